internal import Glibc
internal import Synchronization

/// Bytes that never change and that many connections send at once: an encoded state goes to a thousand subscribers
/// from one place in memory.
public final class SharedBytes: Sendable {
    /// The memory; written in `init` alone and freed in `deinit`, so readers on any thread see the same bytes.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer?
    public let count: Int

    /// Counts the bytes, as long as they are there, however many hold them.
    private let budget: MemoryBudget?

    public convenience init(_ source: UnsafeRawBufferPointer) { self.init(source, budget: nil) }

    /// The bytes count in `budget` once, from now until the last who holds them lets go.
    package init(_ source: UnsafeRawBufferPointer, budget: MemoryBudget?) {
        self.budget = budget
        count = source.count
        budget?.hold(source.count)
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
        budget?.release(count)
    }

    /// What was made of the bytes, a compressed form for instance, by a number that says what it is.
    private let forms = Mutex<[Int: SharedBytes]>([:])

    /// The form of that number, made by the first who asks; others who ask meanwhile wait for it.
    public func derived(_ form: Int, _ make: (UnsafeRawBufferPointer) -> SharedBytes) -> SharedBytes {
        forms.withLock { forms in
            if let made = forms[form] { return made }
            let made = make(bytes)
            forms[form] = made
            return made
        }
    }

    /// The bytes; valid while the object is held.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }
}
