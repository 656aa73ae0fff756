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
