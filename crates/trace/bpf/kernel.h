/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fields of kernel structures that the programs read. Names alone count: the loader looks up where each lies in the running
 * kernel.
 */
#pragma once

#include "helpers.h"

#define FROM_KERNEL __attribute__((preserve_access_index))

struct thread_info {
	u32 status;
} FROM_KERNEL;

struct rq;

struct cfs_rq {
	struct rq *rq;
} FROM_KERNEL;

struct sched_entity {
	struct cfs_rq *cfs_rq;
} FROM_KERNEL;

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
} FROM_KERNEL;

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_rdev;
	s64 i_size;
} FROM_KERNEL;

struct file {
	struct inode *f_inode;
	s64 f_pos;
	void *private_data;
} FROM_KERNEL;

struct kiocb {
	struct file *ki_filp;
	s64 ki_pos;
} FROM_KERNEL;

struct fdtable {
	u32 max_fds;
	struct file **fd;
} FROM_KERNEL;

struct files_struct {
	struct fdtable *fdt;
} FROM_KERNEL;

struct mm_struct {
	u64 *pgd;
} FROM_KERNEL;

struct task_struct {
	struct thread_info thread_info;
	struct files_struct *files;
	struct sched_entity se;
	int exit_state;
	int pid;
} FROM_KERNEL;

struct pt_regs {
	unsigned long r10, r9, r8, dx, si, di, orig_ax, ip;
} FROM_KERNEL;

struct address_space {
	struct inode *host;
} FROM_KERNEL;

struct folio {
	struct address_space *mapping;
	unsigned long index;
	/* Its low byte is the order of a large folio, since Linux 6.6. */
	unsigned long _flags_1;
} FROM_KERNEL;

/* Before. */
struct folio___with_order {
	u8 _folio_order;
} FROM_KERNEL;

enum iter_type {
	ITER_UBUF = 1,
	ITER_IOVEC,
};

/* What a call reads or writes, and where in the program's memory. */
struct iov_iter {
	u8 iter_type;
	/* The memory is read, and the file written. */
	_Bool data_source;
	unsigned long iov_offset;
	void *ubuf;
	void *__iov;
	unsigned long count;
	unsigned long nr_segs;
} FROM_KERNEL;

enum pageflags {
	PG_head = 6,
};

/* Whether the running kernel has a field; the number that it gives to a name. */
#define HAS_FIELD(field) __builtin_preserve_field_info(field, 2)
#define NUMBER_OF(type, name) __builtin_preserve_enum_value(*(type *)name, 1)
