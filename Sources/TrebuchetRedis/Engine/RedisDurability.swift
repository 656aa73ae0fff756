/// When what is written at a Redis server counts as done: what an append, a snapshot or a slot that was taken outlasts.
public struct RedisDurability: Hashable, Sendable {
    enum Kind: Hashable {
        case engine, synced
        case replicated(Int, within: Duration)
    }

    let kind: Kind

    /// When the server has it; what it outlasts depends on how that is set. With `appendfsync everysec` up to a second of it is lost when
    /// the machine goes down. The default.
    public static let engine = RedisDurability(kind: .engine)

    /// When it is on the server's disk. `RedisEngine.check()` refuses a server that is not set so (`appendfsync always`); the user of the
    /// URL needs `+config|get` for that.
    public static let synced = RedisDurability(kind: .synced)

    /// When so many replicas have said that they have it; after `within` it is an `unknownOutcome`: written, and perhaps lost when another
    /// server takes the place of this one.
    ///
    /// - Parameters:
    ///   - replicas: at least 1.
    ///   - within: at most a half of `RedisSettings.commandTimeout`.
    public static func replicated(_ replicas: Int, within: Duration = .seconds(1)) -> RedisDurability {
        RedisDurability(kind: .replicated(replicas, within: within))
    }

    func check(_ settings: RedisSettings) throws(ClusterEngineError) {
        guard case .replicated(let replicas, let within) = kind else { return }
        guard replicas > 0, within >= .milliseconds(1), within * 2 <= settings.commandTimeout else {
            throw ClusterEngineError(
                .invalid,
                "one replica or more is waited for, and from 1 ms to a half of RedisSettings.commandTimeout")
        }
    }

    var confirmation: RedisConfirmation? {
        guard case .replicated(let replicas, let within) = kind else { return nil }
        return RedisConfirmation(replicas: replicas, within: within) { answer in
            guard let word = answer.elements?.first else { return false }
            return word.isText("accepted") || word.isText("repeated") || word.isText("stored")
                || word.isText("acquired") || word.isText("changed")
        }
    }
}
