internal import Bytes
internal import TrebuchetWire

/// The frames that one subscriber was sent in a pass. Another subscriber receives the same bytes with one `send` if its
/// version, stream identifier and framing are the same.
///
/// Accessed on its loop.
package final class SharedFrameCache {
    /// The maximum size of kept frames. For larger frames the copied bytes dominate the cost, so nothing is saved.
    package static let maximumBytes = 32 << 10

    /// The counts of sent messages and bytes.
    struct Sends {
        private(set) var messages: UInt64 = 0
        private(set) var patches: UInt64 = 0
        private(set) var events: UInt64 = 0
        /// The size of the parts that subscribers share.
        private(set) var bytes: UInt64 = 0
        /// The number of skipped versions.
        var skipped: UInt64 = 0

        var wholeValues: UInt64 { messages &- patches &- events }

        @inline(__always)
        mutating func recordSend(isPatch: Bool, isEvent: Bool, _ count: Int) {
            messages &+= 1
            if isEvent { events &+= 1 } else if isPatch { patches &+= 1 }
            bytes &+= UInt64(count)
        }

        static func += (left: inout Sends, right: Sends) {
            left.messages &+= right.messages
            left.patches &+= right.patches
            left.events &+= right.events
            left.bytes &+= right.bytes
            left.skipped &+= right.skipped
        }

        static func - (left: Sends, right: Sends) -> Sends {
            var rest = left
            rest.messages &-= right.messages
            rest.patches &-= right.patches
            rest.events &-= right.events
            rest.bytes &-= right.bytes
            rest.skipped &-= right.skipped
            return rest
        }
    }

    /// The result of a lookup.
    enum LookupResult {
        case usable
        /// The previous subscriber was in the same state, so the next ones may be too.
        case cacheable
        case other
    }

    private(set) var sends = Sends()
    @exclusivity(unchecked) var frames = ByteBuffer()
    /// The properties of the last subscriber.
    private var broadcaster: ObjectIdentifier?
    private var streamID: [UInt8] = []
    private var framing: UInt8 = 0
    private var countsDeliveries = true
    /// The version of the last subscriber before its updates.
    private var from: UInt64 = 0
    /// Its version afterwards; 0 if its frames are not kept.
    private var to: UInt64 = 0

    /// Returns whether a subscriber can receive the kept frames.
    func lookUp(_ subscription: StreamSubscription, _ framing: UInt8, newest: UInt64) -> LookupResult {
        let isAlike =
            self.framing == framing && from == subscription.sent && countsDeliveries == subscription.countsDeliveries
            && broadcaster == ObjectIdentifier(subscription.broadcaster) && streamID == subscription.streamID
        if isAlike { return to == newest && newest > from ? .usable : .cacheable }
        broadcaster = ObjectIdentifier(subscription.broadcaster)
        (self.framing, from, countsDeliveries) = (framing, subscription.sent, subscription.countsDeliveries)
        (streamID, to) = (subscription.streamID, 0)
        return .other
    }

    /// Keeps `frames` as the frames of a subscriber, unless they are incomplete.
    func storeFrames(_ sends: Sends, for subscription: StreamSubscription, newest: UInt64) {
        let head = UInt64(StreamDataEncoding.prefixCount + streamID.count)
        let least = sends.bytes &+ sends.messages &* head
        guard subscription.index >= 0, subscription.sent == newest, sends.messages > 0,
            frames.count >= least, frames.count <= Self.maximumBytes
        else { return clear() }
        self.sends = sends
        to = newest
    }

    /// Discards the frames, but not the properties of their subscriber.
    func clear() {
        to = 0
        frames.reset(keepingAtMost: Self.maximumBytes)
    }
}
