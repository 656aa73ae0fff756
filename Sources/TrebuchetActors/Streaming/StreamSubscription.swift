/// One stream to one subscriber. On its loop.
package final class StreamSubscription {
    package let streamID: [UInt8]
    package let broadcaster: Broadcaster
    /// It removes the subscription before it goes.
    unowned let subscriber: any StreamSubscriber
    /// The sequence number of the last update that was sent.
    package var sent: UInt64 = 0
    private var shortPlace: Int32 = -1
    /// Whether it counts as one with a filter too, in its subscriber's shares.
    package let isFiltered: Bool

    /// Where the broadcaster keeps it; -1 when it does not.
    package var place: Int {
        get { Int(shortPlace) }
        set { shortPlace = Int32(newValue) }
    }

    package init(streamID: [UInt8], broadcaster: Broadcaster, subscriber: any StreamSubscriber, isFiltered: Bool) {
        self.isFiltered = isFiltered
        self.streamID = streamID
        self.broadcaster = broadcaster
        self.subscriber = subscriber
    }
}
