// Package layers holds tests of how the code is laid out: which file of a package may use
// which, who writes the state of a History, and in which order locks are taken.
package layers
