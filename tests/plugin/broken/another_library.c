/* The library that needs-library is linked to. */
__attribute__((visibility("default"))) int topolet_of_another_library(void);

int topolet_of_another_library(void) { return 0; }
