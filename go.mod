module github.com/seed-c1b73e60/convo

go 1.26
