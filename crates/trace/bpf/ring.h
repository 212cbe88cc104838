/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Each CPU's ring of records, which user space maps and empties. Nobody is woken.
 *
 * A record is two to eight words and lies within one page of the ring. Its first word has its kind and its time; it is written last,
 * so that a record whose first word is zero is being written still. The reader leaves zeros behind. A program that is interrupted
 * by another on its CPU has its room already: room is taken by a compare-and-swap.
 */
#pragma once

#include "helpers.h"

#define PAGE_WORDS 512
#define TIME_BITS 58

/* Numbered as in src/stream/compact.rs. */
enum kind {
	FILL = 1, /* the rest of the page is empty */
	PAGE_ALLOC,
	NO_PAGE,
	PAGE_FREE,
	PAGE_FREE_BATCHED,
	ZONE_LOCKED,
	PCPU_DRAIN,
	FAULT,
	SWITCH,
	NEW_TASK,
	EXEC,
	ENTER,
	LEAVE,
	FILE_READ,
	FILE_ADD,
	FILE_DROP,
	FILE_WRITE,
	PAGE_ADDRESS,
	LOST, /* the reader's own */
	WAKING,
	FAULT_SHORT,
	NEEDED,
};

/*
 * The kernel skips a program on a CPU that runs it already. Pages that an interrupt frees (page tables, by RCU) would be missed while
 * page_free is busy with those of the interrupted task: so it has a stand-in at the same tracepoint, called after it, which records
 * what page_free did not take. For others this does not pay: what they miss is counted.
 *
 * These are the pages that page_free took and the stand-in has not looked at: the last, and that of whom it interrupted.
 */
struct taken {
	u64 last;
	u64 before;
};

/* The program's word that it takes a page's event. Volatile, for an interrupt may come between any two accesses. */
INLINE void take(volatile struct taken *taken, u64 page)
{
	taken->before = taken->last;
	taken->last = page;
}

/* Whether the program took it; it is forgotten. */
INLINE int was_taken(volatile struct taken *taken, u64 page)
{
	if (taken->last == page) {
		taken->last = taken->before;
		taken->before = 0;
		return 1;
	}
	/* An interrupt came after the program and before this, and its own stand-in was skipped. */
	if (taken->before == page) {
		taken->before = 0;
		return 1;
	}
	return 0;
}

/* A CPU's own state. What user space writes has a cache line of its own. */
struct cpu {
	u64 head; /* words that were written or are being written */
	u64 lost; /* records that found no room */
	u64 kept_frees; /* of the last 64 frees by others, those that were recorded */
	u64 stand_ins; /* events that a stand-in recorded */
	struct taken frees;
	u64 counted; /* page events that were sampled away */
	u64 counted_pages; /* pages for user space that were handed out by them */
	u64 tail; /* words that were read */
	u64 one_in_shift; /* page events of one unit of frames in 1 << this are recorded */
	u64 unused[6];
};

struct ring_page {
	u64 words[PAGE_WORDS];
};

/* Pages of each CPU's ring are 1 << this. */
const volatile u32 ring_shift = 0;

ARRAY(cpus, struct cpu, 1);
ARRAY(ring, struct ring_page, 1);

/* Where a program runs. */
struct here {
	u32 number;
	struct cpu *cpu;
};

INLINE struct here here(void)
{
	struct here here = {.number = cpu_number()};
	here.cpu = look_up(&cpus, &here.number);
	return here;
}

/* The place of word `at` of this CPU's ring; `words` of them lie in one page. */
INLINE u64 *place(struct here *here, u64 at, u32 words)
{
	u32 index = (here->number << ring_shift) + ((at / PAGE_WORDS) & ((1u << ring_shift) - 1));
	struct ring_page *page = look_up(&ring, &index);
	u32 word = at & (PAGE_WORDS - 1);

	/* Never false, as the caller sees to it; the verifier does not. */
	if (!page || word > PAGE_WORDS - words)
		return 0;
	return &page->words[word];
}

/* Makes a record whole. The volatile store is not moved before those of its other words. */
INLINE void commit(u64 *record, enum kind kind, u64 time)
{
	*(volatile u64 *)record = (u64)kind << TIME_BITS | (time & ((1ull << TIME_BITS) - 1));
}

/* Room for a record, or none: then it is counted as lost. */
INLINE u64 *reserve(struct here *here, u32 words)
{
	struct cpu *cpu = here->cpu;

	/* Somebody else on this CPU may take room in between, an interrupt in an interrupt in a task at the worst. */
#pragma clang loop unroll(disable)
	for (int attempt = 0; attempt < 4; attempt++) {
		u64 head = *(volatile u64 *)&cpu->head;
		u64 left = PAGE_WORDS - (head & (PAGE_WORDS - 1));
		u64 start = left < words ? head + left : head;
		u64 used = start + words - *(volatile u64 *)&cpu->tail;

		if (used > (u64)PAGE_WORDS << ring_shift)
			break;
		if (__sync_val_compare_and_swap(&cpu->head, head, start + words) != head)
			continue;
		if (start != head) {
			u64 *rest = place(here, head, 1);
			if (rest)
				commit(rest, FILL, 0);
		}
		return place(here, start, words);
	}
	__sync_fetch_and_add(&cpu->lost, 1);
	return 0;
}

/* The second word: whose time it is, ten bits and thirty-two of the kind's own. */
INLINE u64 second(u32 tid, u32 small, u32 large)
{
	return (tid & 0x3fffff) | (u64)(small & 0x3ff) << 22 | (u64)large << 32;
}
