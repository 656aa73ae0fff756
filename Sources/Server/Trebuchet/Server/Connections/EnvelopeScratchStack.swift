internal import TrebuchetWire

/// The storage for scanned messages: one place for each message that is handled at once. More than one is rare.
struct EnvelopeScratchStack: ~Copyable {
    private static let count = 4
    /// Accessed through a pointer, so that reads of a scan result need no exclusivity check.
    private let envelopes = UnsafeMutablePointer<ScannedEnvelope>.allocate(capacity: count)
    private var used = 0

    init() { envelopes.initialize(repeating: ScannedEnvelope(), count: Self.count) }

    deinit {
        envelopes.deinitialize(count: Self.count)
        envelopes.deallocate()
    }

    /// Returns a place that is reserved until `release`, which releases places in reverse order; nil when all are in use.
    @inline(__always)
    mutating func reserve() -> UnsafeMutablePointer<ScannedEnvelope>? {
        guard used < Self.count else { return nil }
        used += 1
        return envelopes + (used - 1)
    }

    @inline(__always)
    mutating func release() { used -= 1 }
}
