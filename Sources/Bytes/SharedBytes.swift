internal import Synchronization

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Bytes that never change and that many connections send at once: an encoded state goes to a thousand subscribers
/// from one place in memory.
public final class SharedBytes: Sendable {
    /// The memory; written in `init` alone and freed in `deinit`, so readers on any thread see the same bytes.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer?
    public let count: Int
    /// Where they are counted as long as they are there; nil where they are too few.
    private let budget: MemoryBudget?

    /// Fewer bytes are not counted in a budget: a server has not many of so few.
    package static let leastCounted = 8 << 10

    public convenience init(_ source: UnsafeRawBufferPointer) { self.init(source, countedIn: nil) }

    /// Bytes that are counted once in a budget, however many hold them, until the last one lets go.
    package init(_ source: UnsafeRawBufferPointer, countedIn budget: MemoryBudget?) {
        count = source.count
        self.budget = source.count < Self.leastCounted ? nil : budget
        self.budget?.hold(source.count)
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
        guard let budget else { return }
        budget.release(count + forms.withLock { $0.values.reduce(0) { $0 + $1.count } })
    }

    /// What was made of the bytes, a compressed form for instance, by a number that says what it is.
    private let forms = Mutex<[Int: SharedBytes]>([:])

    /// The form of that number, made by the first who asks; others who ask meanwhile wait for it.
    public func derived(_ form: Int, _ make: (UnsafeRawBufferPointer) -> SharedBytes) -> SharedBytes {
        forms.withLock { forms in
            if let made = forms[form] { return made }
            let made = make(bytes)
            forms[form] = made
            budget?.hold(made.count)
            return made
        }
    }

    /// The bytes; valid while the object is held.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }
}

extension StringProtocol {
    /// Its beginning, of at most so many bytes of UTF-8: whole scalars, none of which is changed.
    ///
    /// For each text of somebody else's that is kept, shown or sent back. `prefix(_:)` is no limit for these: it counts characters, and one
    /// character may have any number of scalars.
    package func prefix(bytes count: Int) -> String {
        let bytes = Array(utf8.prefix(count + 1))
        guard bytes.count > count else { return String(self) }
        var end = count
        // Back to where a scalar begins.
        while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
