package sqlstore

// Waiting returns how many Appends wait for a transaction.
func (s *Store) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}
