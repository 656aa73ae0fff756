internal import Bytes
internal import TrebuchetWire

/// What one subscriber was sent in a pass over all, framed as it went to its socket: whoever is where it was, knows the stream by the same
/// identifier and takes messages in the same frames gets the same bytes from here, at the price of a `send`.
///
/// On its loop.
package final class CommonFrames {
    /// More is not kept: then what is copied costs more than how often.
    package static let mostBytes = 32 << 10

    /// How much was sent.
    struct Sends {
        private(set) var messages: UInt64 = 0
        private(set) var patches: UInt64 = 0
        private(set) var events: UInt64 = 0
        /// Of what subscribers have in common.
        private(set) var bytes: UInt64 = 0
        /// Versions that were left out.
        var skipped: UInt64 = 0

        var wholes: UInt64 { messages &- patches &- events }

        @inline(__always)
        mutating func add(isPatch: Bool, isEvent: Bool, _ count: Int) {
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

    enum Look {
        case fits
        /// The one before was alike, so others may be.
        case isToBeKept
        case other
    }

    private(set) var sends = Sends()
    @exclusivity(unchecked) var frames = ByteBuffer()
    /// Of who was looked at last.
    private var broadcaster: ObjectIdentifier?
    private var streamID: [UInt8] = []
    private var framing: UInt8 = 0
    private var countsDeliveries = true
    /// Where it was before.
    private var from: UInt64 = 0
    /// Where it was then; 0 when nothing is kept of it.
    private var to: UInt64 = 0

    /// Whether a subscriber is to get what is here.
    func look(at subscription: StreamSubscription, _ framing: UInt8, newest: UInt64) -> Look {
        let isAlike =
            self.framing == framing && from == subscription.sent && countsDeliveries == subscription.countsDeliveries
            && broadcaster == ObjectIdentifier(subscription.broadcaster) && streamID == subscription.streamID
        if isAlike { return to == newest && newest > from ? .fits : .isToBeKept }
        broadcaster = ObjectIdentifier(subscription.broadcaster)
        (self.framing, from, countsDeliveries) = (framing, subscription.sent, subscription.countsDeliveries)
        (streamID, to) = (subscription.streamID, 0)
        return .other
    }

    /// What is in `frames` are those that a subscriber was sent, unless they are not all.
    func keep(_ sends: Sends, for subscription: StreamSubscription, newest: UInt64) {
        let head = UInt64(StreamDataParts.prefixCount + streamID.count)
        let least = sends.bytes &+ sends.messages &* head
        guard subscription.place >= 0, subscription.sent == newest, sends.messages > 0,
            frames.count >= least, frames.count <= Self.mostBytes
        else { return clear() }
        self.sends = sends
        to = newest
    }

    /// Forgets the frames, and not whom they were for.
    func clear() {
        to = 0
        frames.reset(keepingAtMost: Self.mostBytes)
    }
}
