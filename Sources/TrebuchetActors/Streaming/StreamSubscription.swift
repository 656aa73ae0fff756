/// One stream to one subscriber. On its loop.
package final class StreamSubscription {
    package let streamID: [UInt8]
    package let broadcaster: Broadcaster
    /// It removes the subscription before it goes.
    unowned let subscriber: any StreamSubscriber
    /// The sequence number up to which the subscriber has what it needs; 0 when it has nothing.
    package private(set) var sent: UInt64 = 0
    private var shortPlace: Int32 = -1
    /// Whether it counts as one with a filter too, in its subscriber's shares.
    package let isFiltered: Bool
    /// Its subscriber's, which never changes.
    let countsDeliveries: Bool

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
        countsDeliveries = subscriber.countsDeliveries
    }

    /// An update with this number has been handed to the subscriber.
    func didSend(_ sequence: UInt64) { sent = sequence }

    /// The subscriber needs nothing up to this number: it has it, or is to get the whole of what comes then.
    package func begin(behind sequence: UInt64) { sent = max(sent, sequence) }
}
