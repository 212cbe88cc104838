/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a BPF program may call, by the numbers of linux/bpf.h, and how maps and programs are declared so that a loader finds them.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define INLINE static inline __attribute__((always_inline))
#define PROGRAM(section_name) __attribute__((section(section_name), used))
#define MAP __attribute__((section(".maps"), used))

/* Of linux/bpf.h: a map of fixed-size values by index, and that user space may map it. */
#define TYPE_ARRAY 2
#define FLAG_MAPPABLE (1 << 10)

/* An array of values of this type. The loader may make it longer. */
#define ARRAY(name, value_type, entries)      \
	struct {                              \
		int (*type)[TYPE_ARRAY];      \
		int (*max_entries)[entries];  \
		int (*map_flags)[FLAG_MAPPABLE]; \
		u32 *key;                     \
		value_type *value;            \
	} name MAP

/* Whether it could read `bytes` bytes from an address of the kernel: 0, or an error. */
static long (*const read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
/* The same from an address of the current program, if the page is there. */
static long (*const read_program)(void *to, u32 bytes, const void *from) = (void *)112;
static void *(*const look_up)(const void *map, const void *key) = (void *)1;
static u64 (*const monotonic_ns)(void) = (void *)5;
static u32 (*const cpu_number)(void) = (void *)8;
static u64 (*const current_ids)(void) = (void *)14;
static struct task_struct *(*const current_task)(void) = (void *)158;
