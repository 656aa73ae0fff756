internal import Synchronization

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Immutable bytes that many connections send at once: one encoded state in memory for a thousand subscribers.
public final class SharedBytes: Sendable {
    /// The memory. It is written only in `init` and freed in `deinit`, so readers on any thread see the same bytes.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer?
    /// The number of bytes.
    public let count: Int

    /// The size below which bytes are not counted in a budget, because a server holds only a few of that size.
    package static let leastCounted = 8 << 10

    /// Copies `source`; the bytes are not counted in a budget.
    public convenience init(_ source: UnsafeRawBufferPointer) { self.init(source, countedIn: nil) }

    /// Copies `source`. A budget counts the bytes once, for any number of references, until the last one is released.
    package init(_ source: UnsafeRawBufferPointer, countedIn budget: MemoryBudget?) {
        count = source.count
        defer { self.count(in: budget) }
        guard let from = source.baseAddress, count > 0 else {
            base = nil
            return
        }
        base = malloc(count)
        guard let base else { fatalError("out of memory: \(source.count) shared bytes") }
        memcpy(base, from, count)
    }

    deinit {
        free(base)
        state.withLock { $0.budget }?.release(count)
    }

    private struct State {
        /// Derived forms of the bytes, such as a compressed form, by their identifying number.
        var forms: [Int: SharedBytes] = [:]
        /// The budget that counts the bytes during their lifetime, or nil if they are too few.
        var budget: MemoryBudget?
    }

    private let state = Mutex(State())

    /// Counts the bytes in a budget, unless one counts them already.
    private func count(in budget: MemoryBudget?) {
        guard let budget, count >= Self.leastCounted else { return }
        let isCounted = state.withLock { state in
            defer { state.budget = state.budget ?? budget }
            return state.budget != nil
        }
        if !isCounted { budget.adjustUsage(by: count) }
    }

    /// Returns the derived form with the number `form`, created at the first call. No caller waits for another one: concurrent
    /// first callers create it more than once, and one of the results is kept. The budget of the bytes counts it too.
    public func derived(_ form: Int, _ make: (UnsafeRawBufferPointer) -> SharedBytes) -> SharedBytes {
        if let made = state.withLock({ $0.forms[form] }) { return made }
        let made = make(bytes)
        return state.withLock { state in
            if let other = state.forms[form] { return other }
            state.forms[form] = made
            made.count(in: state.budget)
            return made
        }
    }

    /// Returns whether the derived form with the number `form` exists.
    package func hasDerived(_ form: Int) -> Bool { state.withLock { $0.forms[form] != nil } }

    /// The bytes, valid while the object is retained.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }
}

extension StringProtocol {
    /// Returns the longest prefix of at most `count` UTF-8 bytes that consists of whole, unchanged scalars.
    ///
    /// Use it for every foreign text that is stored, shown or sent back. `prefix(_:)` is no bound for these: it counts
    /// characters, and a character can have any number of scalars.
    package func prefix(bytes count: Int) -> String {
        let bytes = Array(utf8.prefix(count + 1))
        guard bytes.count > count else { return String(self) }
        var end = count
        // Moves back to the start of a scalar.
        while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
