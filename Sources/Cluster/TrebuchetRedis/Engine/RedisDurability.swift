/// The condition for a completed write at a Redis server, and so the failures that an append, a snapshot or an
/// acquired slot survives.
public struct RedisDurability: Hashable, Sendable {
    /// The kind of confirmation.
    enum Kind: Hashable {
        case engine, synced
        case replicated(Int, within: Duration)
    }

    let kind: Kind

    /// The server has the write; its configuration determines which failures it survives. With `appendfsync everysec`
    /// a crash of the machine loses up to a second of writes. The default.
    public static let engine = RedisDurability(kind: .engine)

    /// The write is on the server's disk. `RedisEngine.check()` refuses a server without that setting (`appendfsync
    /// always`); the user of the URL needs `+config|get` for the check.
    public static let synced = RedisDurability(kind: .synced)

    /// This number of replicas has acknowledged the write. After `within` it is an `unknownOutcome`: written, and
    /// possibly lost after a failover.
    ///
    /// - Parameters:
    ///   - replicas: at least 1.
    ///   - within: at most half of `RedisSettings.commandTimeout`.
    public static func replicated(_ replicas: Int, within: Duration = .seconds(1)) -> RedisDurability {
        RedisDurability(kind: .replicated(replicas, within: within))
    }

    func check(_ settings: RedisSettings) throws(ClusterEngineError) {
        guard case .replicated(let replicas, let within) = kind else { return }
        guard replicas > 0, within >= .milliseconds(1), within * 2 <= settings.commandTimeout else {
            throw ClusterEngineError(
                .invalid,
                "at least one replica is required, and a time of 1 ms to half of RedisSettings.commandTimeout")
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
