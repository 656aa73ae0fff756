internal import TrebuchetWire

/// Where messages are scanned: one place for each that is in hand at once, of which there is seldom a second.
struct ScanPlaces: ~Copyable {
    private static let count = 4
    /// Behind a pointer, so that reading what was found costs no exclusivity check.
    private let places = UnsafeMutablePointer<ScannedEnvelope>.allocate(capacity: count)
    private var used = 0

    init() { places.initialize(repeating: ScannedEnvelope(), count: Self.count) }

    deinit {
        places.deinitialize(count: Self.count)
        places.deallocate()
    }

    /// A place that is free until `giveBack`, in the reverse order; nil when all are taken.
    @inline(__always)
    mutating func take() -> UnsafeMutablePointer<ScannedEnvelope>? {
        guard used < Self.count else { return nil }
        used += 1
        return places + (used - 1)
    }

    @inline(__always)
    mutating func giveBack() { used -= 1 }
}
