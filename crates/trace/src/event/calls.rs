//! The calls by which a task changes its address space: a tracepoint where each begins, one where it ends. `stream::spaces`
//! makes one event of the two.

use super::Group;
use super::tracepoint::{Decoded, Tracepoint};

/// Makes [`Call`] and its tracepoints of a table: the call, its tracepoints, its arguments by the kernel's names.
macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident = $enter:literal [$($argument:literal),*] $exit:literal)*) => {
        /// A call that changes the caller's address space.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Call {
            $($(#[$doc])* $call,)*
        }

        /// Where calls begin and end.
        pub(super) const TRACEPOINTS: &[Tracepoint] = &[$(
            Tracepoint {
                group: Group::Space,
                name: $enter,
                needed: &[$($argument),*],
                optional: &[],
                read: |of| {
                    let mut arguments = [0; 6];
                    for (index, argument) in arguments.iter_mut().enumerate() {
                        *argument = of.number(index).unwrap_or(0);
                    }
                    Some(Decoded::Enter { call: Call::$call, arguments })
                },
            },
            Tracepoint {
                group: Group::Space,
                name: $exit,
                needed: &["ret"],
                optional: &[],
                read: |of| Some(Decoded::Leave { call: Call::$call, result: of.number(0)? as i64 }),
            },
        )*];
    };
}

calls! {
    /// Maps a file or fresh memory.
    Mmap = "syscalls:sys_enter_mmap" ["addr", "len", "prot", "flags", "fd", "off"] "syscalls:sys_exit_mmap"
    /// Takes a range away.
    Munmap = "syscalls:sys_enter_munmap" ["addr", "len"] "syscalls:sys_exit_munmap"
    /// Moves a range, or changes its length.
    Mremap = "syscalls:sys_enter_mremap" ["addr", "old_len", "new_len"] "syscalls:sys_exit_mremap"
    /// Moves the heap's end.
    Brk = "syscalls:sys_enter_brk" ["brk"] "syscalls:sys_exit_brk"
    /// Changes what may be done with a range.
    Mprotect = "syscalls:sys_enter_mprotect" ["start", "len", "prot"] "syscalls:sys_exit_mprotect"
    /// The same, with a key.
    PkeyMprotect =
        "syscalls:sys_enter_pkey_mprotect" ["start", "len", "prot"] "syscalls:sys_exit_pkey_mprotect"
    /// Says what will be done with a range.
    Madvise = "syscalls:sys_enter_madvise" ["start", "len_in", "behavior"] "syscalls:sys_exit_madvise"
    /// Brings a range in and keeps it.
    Mlock = "syscalls:sys_enter_mlock" ["start", "len"] "syscalls:sys_exit_mlock"
    /// The same, with flags.
    Mlock2 = "syscalls:sys_enter_mlock2" ["start", "len", "flags"] "syscalls:sys_exit_mlock2"
    /// Lets a range go.
    Munlock = "syscalls:sys_enter_munlock" ["start", "len"] "syscalls:sys_exit_munlock"
    /// Keeps all that there is, or will be.
    Mlockall = "syscalls:sys_enter_mlockall" ["flags"] "syscalls:sys_exit_mlockall"
    /// Lets all go.
    Munlockall = "syscalls:sys_enter_munlockall" [] "syscalls:sys_exit_munlockall"
    /// Maps shared memory of System V.
    Shmat = "syscalls:sys_enter_shmat" ["shmid", "shmaddr", "shmflg"] "syscalls:sys_exit_shmat"
    /// Takes it away.
    Shmdt = "syscalls:sys_enter_shmdt" ["shmaddr"] "syscalls:sys_exit_shmdt"
    /// Makes a process or a thread.
    Clone = "syscalls:sys_enter_clone" [] "syscalls:sys_exit_clone"
    /// The same, with its arguments in a structure.
    Clone3 = "syscalls:sys_enter_clone3" [] "syscalls:sys_exit_clone3"
    /// Makes a process.
    Fork = "syscalls:sys_enter_fork" [] "syscalls:sys_exit_fork"
    /// Makes one that has the caller's memory until it runs another program.
    Vfork = "syscalls:sys_enter_vfork" [] "syscalls:sys_exit_vfork"
    /// Says something of the process: whether it may have huge pages, and much that is of no interest here.
    Prctl = "syscalls:sys_enter_prctl" ["option", "arg2"] "syscalls:sys_exit_prctl"
    /// Says which nodes a range's memory comes from.
    Mbind = "syscalls:sys_enter_mbind" ["start", "len", "mode", "nmask", "maxnode", "flags"] "syscalls:sys_exit_mbind"
    /// Says it of all that the task allocates.
    SetMempolicy = "syscalls:sys_enter_set_mempolicy" ["mode", "nmask", "maxnode"] "syscalls:sys_exit_set_mempolicy"
    /// Says which node a range's policy begins at.
    SetHomeNode =
        "syscalls:sys_enter_set_mempolicy_home_node" ["start", "len", "home_node"] "syscalls:sys_exit_set_mempolicy_home_node"
    /// Moves what a process has on some nodes to others.
    MigratePages =
        "syscalls:sys_enter_migrate_pages" ["pid", "maxnode", "old_nodes", "new_nodes"] "syscalls:sys_exit_migrate_pages"
    /// Moves single pages, or says where they are.
    MovePages =
        "syscalls:sys_enter_move_pages" ["pid", "nr_pages", "pages", "nodes", "status", "flags"] "syscalls:sys_exit_move_pages"
}

impl Call {
    /// What stands in the place of a call's `maxnode` where its masks of nodes stand in the places of their addresses: programs in the
    /// kernel read them. No call that succeeds has it.
    pub(crate) const MASKS_ARE_READ: u64 = u64::MAX;

    /// The call that x86-64 numbers so.
    pub(crate) const fn of_x86_64(number: u32) -> Option<Self> {
        Some(match number {
            9 => Self::Mmap,
            10 => Self::Mprotect,
            11 => Self::Munmap,
            12 => Self::Brk,
            25 => Self::Mremap,
            28 => Self::Madvise,
            30 => Self::Shmat,
            56 => Self::Clone,
            57 => Self::Fork,
            58 => Self::Vfork,
            67 => Self::Shmdt,
            149 => Self::Mlock,
            150 => Self::Munlock,
            151 => Self::Mlockall,
            152 => Self::Munlockall,
            157 => Self::Prctl,
            237 => Self::Mbind,
            238 => Self::SetMempolicy,
            256 => Self::MigratePages,
            279 => Self::MovePages,
            325 => Self::Mlock2,
            329 => Self::PkeyMprotect,
            435 => Self::Clone3,
            450 => Self::SetHomeNode,
            _ => return None,
        })
    }
}
