package toy

import "testing"

func TestClamp(t *testing.T) {
	for n, want := range map[int]int{-5: 0, 3: 3, 12: 9} {
		if got := Clamp(n); got != want {
			t.Errorf("Clamp(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if got := Count(3); got != 3 {
		t.Errorf("Count(3) = %d", got)
	}
}
