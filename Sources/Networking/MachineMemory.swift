internal import Glibc

/// The memory of the machine.
package enum MachineMemory {
    /// All of it, in bytes.
    package static let bytes: Int = {
        let pages = sysconf(Int32(_SC_PHYS_PAGES))
        let size = sysconf(Int32(_SC_PAGESIZE))
        // A machine that does not tell is taken for a small one.
        return pages > 0 && size > 0 ? pages * size : 2 << 30
    }()
}
