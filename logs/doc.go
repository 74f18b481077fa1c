// Package logs works on the logs of a [convo.Store] as a whole: [Sealed] encrypts them, and
// [Copy] copies one to another Store or key.
package logs
