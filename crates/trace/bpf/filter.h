/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whose events are recorded: those of tasks that belong to the workload, and frees by anybody of pages that these were handed.
 */
#pragma once

#include "helpers.h"

/* Linux has no larger task numbers. */
#define TASKS (1 << 22)

/* Whether events of all tasks are recorded. */
const volatile u32 everybody = 0;

/* A bit for each task's number: whether it belongs to the workload. User space sets those that exist at the start. */
ARRAY(members, u64, TASKS / 64);
/*
 * A bit for each frame: whether the workload was handed it and nobody else freed it since. It stays when the workload frees it, for an
 * atomic operation in each free, and in each allocation after it, is a tenth of what recording costs a program that faults; user space,
 * which knows those frees, drops what others free later.
 */
ARRAY(held, u64, 1);

INLINE u64 *member_word(u32 tid)
{
	u32 index = (tid & (TASKS - 1)) / 64;
	return look_up(&members, &index);
}

INLINE int is_member(u32 tid)
{
	if (everybody)
		return 1;
	u64 *word = member_word(tid);
	return word && (*word >> (tid % 64) & 1);
}

/* A new task belongs to the workload if who made it does; an earlier one of its number may have. */
INLINE void inherit(u32 parent, u32 child)
{
	u64 *word = member_word(child);
	u64 bit = 1ull << (child % 64);

	if (!word)
		return;
	if (is_member(parent))
		__sync_fetch_and_or(word, bit);
	else if (*word & bit)
		__sync_fetch_and_and(word, ~bit);
}

/* The bits of a block within its first word. */
INLINE u64 block_bits(u32 pfn, u32 order)
{
	return order >= 6 ? ~0ull : ((1ull << (1u << order)) - 1) << (pfn % 64);
}

/* Words that a block has bits in: blocks are aligned to their size, and none is larger than 1024 pages. */
INLINE u32 block_words(u32 order)
{
	return order <= 6 ? 1 : 1u << ((order - 6) & 7);
}

#define BLOCK_WORDS_MAX 16

INLINE void hold(u32 pfn, u32 order)
{
	u64 bits = block_bits(pfn, order);
	u32 words = block_words(order);

	for (u32 i = 0; i < BLOCK_WORDS_MAX && i < words; i++) {
		u32 index = pfn / 64 + i;
		u64 *word = look_up(&held, &index);
		if (word && (*word & bits) != bits)
			__sync_fetch_and_or(word, bits);
	}
}

/* Whether any page of the block was held; none is from here on. For frees by others. */
INLINE int let_go(u32 pfn, u32 order)
{
	u64 bits = block_bits(pfn, order);
	u32 words = block_words(order);
	int was_held = 0;

	for (u32 i = 0; i < BLOCK_WORDS_MAX && i < words; i++) {
		u32 index = pfn / 64 + i;
		u64 *word = look_up(&held, &index);
		if (word && *word & bits) {
			was_held = 1;
			__sync_fetch_and_and(word, ~bits);
		}
	}
	return was_held;
}
