/// What streams ask of a session.
extension Session {
    var isAwaited: Bool { !shard.answersBehindStreams.isEmpty }

    func streamsMayShow() { shard.streamsMayShow(self) }
}
