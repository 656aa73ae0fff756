/// What streams ask of a connection.
extension ServerConnection {
    var isAwaited: Bool { !shard.answersBehindStreams.isEmpty }

    func streamsMayShow() { shard.streamsMayShow(self) }
}
