// Package repotest holds tests of the repository as a whole, which use only what is
// exported: that its pages agree with the code, what a program pays at its start for
// importing it, that requests stay the same byte for byte, and long random runs of a
// History.
package repotest
