/// One stream to one subscriber. Accessed on its loop.
package final class StreamSubscription {
    package let streamID: [UInt8]
    package let broadcaster: Broadcaster
    /// Unowned, because the subscriber removes the subscription before it is freed.
    unowned let subscriber: any StreamSubscriber
    /// The sequence number up to which the subscriber is up to date; 0 if it has nothing.
    package private(set) var sent: UInt64 = 0
    private var shortIndex: Int32 = -1
    /// Set if it also counts as a filtered one in its subscriber's quotas.
    package let isFiltered: Bool
    /// The subscriber's value, which never changes.
    let countsDeliveries: Bool

    /// The index in the broadcaster's list; -1 if it is not in the list.
    package var index: Int {
        get { Int(shortIndex) }
        set { shortIndex = Int32(newValue) }
    }

    package init(streamID: [UInt8], broadcaster: Broadcaster, subscriber: any StreamSubscriber, isFiltered: Bool) {
        self.isFiltered = isFiltered
        self.streamID = streamID
        self.broadcaster = broadcaster
        self.subscriber = subscriber
        countsDeliveries = subscriber.countsDeliveries
    }

    /// Records that an update with this number was passed to the subscriber.
    func didSend(_ sequence: UInt64) { sent = sequence }

    /// Marks the subscriber as up to date to this number: it has the version, or receives the next one whole.
    package func markSent(upTo sequence: UInt64) { sent = max(sent, sequence) }
}
