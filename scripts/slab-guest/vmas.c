// Areas of memory made on one CPU and taken down on another: `vmas A B N ROUNDS`. See README.md.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, STRIDE = 2 * PAGE };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void run_on(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("sched_setaffinity");
}

static unsigned long next_random(void)
{
	static unsigned long word = 88172645463325252UL;
	word ^= word << 13;
	word ^= word >> 7;
	return word ^= word << 17;
}

// Every second page of a range, so that no two areas become one.
static char *make_areas(int count)
{
	size_t bytes = (size_t)count * STRIDE;
	char *range = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED)
		die("mmap");
	munmap(range, bytes);
	for (int area = 0; area < count; area++)
		if (mmap(range + (size_t)area * STRIDE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			die("mmap");
	return range;
}

static void drop(char *range, const int *order, int from, int to)
{
	for (int at = from; at < to; at++)
		munmap(range + (size_t)order[at] * STRIDE, PAGE);
}

static int *shuffled(int count)
{
	int *order = malloc(count * sizeof *order);
	for (int at = 0; at < count; at++)
		order[at] = at;
	for (int at = count - 1; at > 0; at--) {
		int other = next_random() % (at + 1), kept = order[at];
		order[at] = order[other];
		order[other] = kept;
	}
	return order;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	int here = atoi(argv[1]), there = atoi(argv[2]), count = atoi(argv[3]), rounds = atoi(argv[4]);
	run_on(here);
	char *range = make_areas(count);
	int *order = shuffled(count);
	for (int round = 0; round < rounds; round++) {
		int child = fork();
		if (!child) {
			// What the fork made here goes there; every second time some is made there and goes here.
			run_on(there);
			if (round % 2) {
				make_areas(count / 2);
				run_on(here);
			}
			_exit(0);
		}
		waitpid(child, 0, 0);
	}
	drop(range, order, 0, count / 2);
	run_on(there);
	usleep(200000);
	drop(range, order, count / 2, count);
	char *more = make_areas(count / 3);
	run_on(here);
	usleep(200000);
	munmap(more, (size_t)(count / 3) * STRIDE);
	usleep(300000);
	return 0;
}
