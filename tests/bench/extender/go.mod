module topolet.io/bench/extender

go 1.26.0
