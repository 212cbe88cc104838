// numa MODE CMD…: runs CMD with a memory policy: local, interleave (nodes 0 and 1).
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    unsigned long nodes = 3;
    int mode = argc > 2 && !strcmp(argv[1], "interleave") ? 3 : 0;
    if (argc < 3) return fprintf(stderr, "numa: local|interleave CMD\n"), 2;
    if (syscall(SYS_set_mempolicy, mode, mode ? &nodes : NULL, mode ? 64UL : 0UL)) return perror("set_mempolicy"), 1;
    execvp(argv[2], argv + 2);
    return perror(argv[2]), 127;
}
