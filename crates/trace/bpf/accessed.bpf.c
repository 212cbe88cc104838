/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Accessed bits as page tables have them: page by page, without the lock of the address space. Nothing calls these programs but the
 * recorder, one at a time (BPF_PROG_TEST_RUN); src/capture/bpf/accessed.rs loads them.
 *
 * The process is the one whose /proc/PID/pagemap the recorder has open: the kernel has checked there that it may look, and keeps what the
 * file leads to. Tables may be freed while they are read. They are read as memory of the kernel that may hold anything: what leads to a
 * table is looked at again after it, and what is not the same is taken to be nothing.
 */
#include "helpers.h"
#include "kernel.h"
#include "files.h"

char granted[] __attribute__((section("license"), used)) = "Dual MIT/GPL";

#define ENTRIES 512
#define ENTRY_BITS 9
#define PAGE_BITS 12

/* Of an entry, by the numbers of x86-64. */
#define PRESENT 0x1ull
#define ACCESSED_BIT 5
#define IS_LARGE 0x80ull
/* Not present for the CPU, for a hint fault is due or nobody may touch it; there for everybody else. */
#define HIDDEN_BIT 8
#define ADDRESS 0x000ffffffffff000ull

/* Units of 512 pages, each with a table of its own, that one call looks at. */
#define UNITS 8
/* In the place of a unit's number: none. */
#define NO_UNIT 0xffff

/* What was found of a unit. */
struct unit {
	u64 state;
	/* Bits by page. */
	u64 present[8];
	u64 accessed[8];
};

struct answer {
	/* The address of the process's first table. */
	u64 root;
	struct unit units[UNITS];
	/* A table. */
	u64 entries[ENTRIES];
};

ARRAY(answers, struct answer, 1);

enum {
	/* Nothing is there, in as much as an entry of this level is for. */
	NOTHING = 0,
	NOTHING_IN_LEVEL_3 = 3,
	NOTHING_IN_LEVEL_4 = 4,
	NOTHING_IN_LEVEL_5 = 5,
	SMALL = 6,
	LARGE = 7,
	CANNOT = 8,
};

INLINE struct answer *own_answer(void)
{
	u32 first = 0;
	return look_up(&answers, &first);
}

/* Copies 64 bytes from an address of the kernel. */
PROGRAM("raw_tp/kernel_bytes") int kernel_bytes(u64 *ctx)
{
	struct answer *answer = own_answer();

	if (!answer)
		return CANNOT;
	return read_kernel(answer->entries, 64, (void *)ctx[0]) ? CANNOT : SMALL;
}

INLINE u64 entry_at(u64 table, u64 index)
{
	u64 entry = 0;

	read_kernel(&entry, sizeof(entry), (void *)(table + index * sizeof(entry)));
	return entry;
}

INLINE u64 entry_of(u64 table, u64 address, u32 level)
{
	return entry_at(table, address >> (PAGE_BITS + ENTRY_BITS * (level - 1)) & (ENTRIES - 1));
}

struct place {
	u64 table;
	u32 state;
};

/*
 * The table of level 2 for the address ctx[1] of the process whose pagemap is open as ctx[0]. All memory is mapped from ctx[2] on, and there
 * are ctx[3] levels of tables.
 */
INLINE struct place level_2(u64 *ctx, struct answer *answer)
{
	struct place place = {};
	u64 address = ctx[1], memory = ctx[2], mm = 0, entry;

	READ_FIELD(mm, file_behind(ctx[0]), struct file, private_data);
	READ_FIELD(place.table, mm, struct mm_struct, pgd);
	answer->root = place.table;
	place.state = CANNOT;
	if (!place.table)
		return place;
	if (ctx[3] == 5) {
		entry = entry_of(place.table, address, 5);
		place.state = NOTHING_IN_LEVEL_5;
		if (!(entry & PRESENT))
			return place;
		place.table = memory + (entry & ADDRESS);
	}
	entry = entry_of(place.table, address, 4);
	place.state = NOTHING_IN_LEVEL_4;
	if (!(entry & PRESENT))
		return place;
	entry = entry_of(memory + (entry & ADDRESS), address, 3);
	place.state = NOTHING_IN_LEVEL_3;
	if (!(entry & PRESENT) || entry & IS_LARGE)
		return place;
	place.table = memory + (entry & ADDRESS);
	place.state = SMALL;
	return place;
}

/* Copies that table. */
PROGRAM("raw_tp/units_there") int units_there(u64 *ctx)
{
	struct answer *answer = own_answer();

	if (!answer)
		return CANNOT;
	struct place place = level_2(ctx, answer);
	if (place.state == SMALL && read_kernel(answer->entries, sizeof(answer->entries), (void *)place.table))
		return NOTHING_IN_LEVEL_3;
	return place.state;
}

INLINE u64 small(struct answer *answer, struct unit *unit, u64 pages)
{
	u64 *entries = answer->entries;

	if (read_kernel(entries, sizeof(answer->entries), (void *)pages))
		return NOTHING;
	for (u32 word = 0; word < 8; word++) {
		u64 present = 0, accessed = 0;
		for (u32 bit = 0; bit < 64; bit++) {
			u64 page = entries[word * 64 + bit];
			u64 is_there = (page | page >> HIDDEN_BIT) & 1;
			present |= is_there << bit;
			accessed |= (page >> ACCESSED_BIT & is_there) << bit;
		}
		unit->present[word] = present;
		unit->accessed[word] = accessed;
	}
	return SMALL;
}

INLINE u64 large(struct unit *unit, u64 entry)
{
	u64 accessed = entry >> ACCESSED_BIT & 1 ? ~0ull : 0;

	for (u32 word = 0; word < 8; word++) {
		unit->present[word] = ~0ull;
		unit->accessed[word] = accessed;
	}
	return LARGE;
}

/* Looks at units of that table: their numbers are the four parts of ctx[4], and of ctx[5]. */
PROGRAM("raw_tp/accessed") int accessed(u64 *ctx)
{
	struct answer *answer = own_answer();

	if (!answer)
		return CANNOT;
	struct place place = level_2(ctx, answer);
	u64 memory = ctx[2], first = ctx[4], second = ctx[5];
	for (u32 number = 0; number < UNITS; number++) {
		u64 index = (number < 4 ? first : second) >> 16 * (number & 3) & NO_UNIT;
		struct unit *unit = &answer->units[number];
		unit->state = NOTHING;
		if (place.state != SMALL || index >= ENTRIES)
			continue;
		u64 entry = entry_at(place.table, index);
		if (!((entry | entry >> HIDDEN_BIT) & PRESENT))
			continue;
		if (entry & IS_LARGE)
			unit->state = large(unit, entry);
		else
			unit->state = small(answer, unit, memory + (entry & ADDRESS));
		/* It leads to the same table still, but for what the CPU has set meanwhile. */
		if ((entry_at(place.table, index) ^ entry) & (ADDRESS | PRESENT | IS_LARGE))
			unit->state = NOTHING;
	}
	return place.state;
}
