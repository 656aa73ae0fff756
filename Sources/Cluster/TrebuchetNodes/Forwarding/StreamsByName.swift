internal import TrebuchetActors
internal import TrebuchetCluster

/// Streams of a connection by the client's names, with a count for each actor.
struct StreamsByName {
    private var streams: [[UInt8]: ForwardedStream] = [:]
    private var counts = UsageCounts<String, Int>()

    var isEmpty: Bool { streams.isEmpty }
    var count: Int { streams.count }
    var names: [[UInt8]] { Array(streams.keys) }

    /// Returns whether a stream of the actor is present.
    func has(_ actor: ActorName) -> Bool { !counts.isEmpty && counts[actor.text] > 0 }

    func all(of slot: ClusterSlot) -> [ForwardedStream] { streams.values.filter { $0.slot == slot } }

    subscript(streamID: [UInt8]) -> ForwardedStream? { streams[streamID] }

    mutating func insert(_ stream: ForwardedStream) {
        if let before = streams.updateValue(stream, forKey: stream.streamID) { counts.remove(1, from: before.actor) }
        counts.add(1, to: stream.actor)
    }

    mutating func remove(_ streamID: [UInt8]) -> ForwardedStream? {
        guard let stream = streams.removeValue(forKey: streamID) else { return nil }
        counts.remove(1, from: stream.actor)
        return stream
    }

    mutating func removeAll(where isOver: ([UInt8]) -> Bool) {
        for streamID in names where isOver(streamID) { _ = remove(streamID) }
    }
}
