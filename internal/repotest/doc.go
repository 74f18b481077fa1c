// Package repotest holds tests of the repository as a whole: that its pages agree
// with the code, and what a program pays at its start for importing it. They use
// only what is exported. The current directory is the root of the repository while
// they run.
package repotest
