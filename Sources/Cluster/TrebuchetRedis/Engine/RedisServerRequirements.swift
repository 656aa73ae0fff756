internal import Platform

/// The suitability of a server, according to its INFO.
struct RedisServerRequirements: Equatable {
    /// Problems that exclude the server, a sentence or two each, with the remedy.
    private(set) var problems: [String] = []
    /// Possible data losses.
    private(set) var warnings: [String] = []

    /// Evaluates the INFO of a server.
    ///
    /// - Parameter hasSentinels: whether sentinels perform failovers of the server.
    init(info: String, _ durability: RedisDurability = .engine, hasSentinels: Bool = false) {
        var fields: [Substring: Substring] = [:]
        for line in info.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon]] = line[line.index(after: colon)...]
        }
        let version = fields["redis_version"] ?? ""
        if let major = version.split(separator: ".").first.flatMap({ Int($0) }) {
            if major < 7 {
                problems.append("The server is Redis \(version). Run Redis 7.0 or later, or Valkey.")
            }
        } else {
            problems.append(
                "The server does not report its version. Allow the user of the URL to call INFO (ACL: +info).")
        }
        if let policy = fields["maxmemory_policy"], policy != "noeviction" {
            problems.append(
                "The server evicts keys when memory is short (maxmemory-policy \(policy)). Set maxmemory-policy noeviction."
            )
        }
        switch fields["aof_enabled"] {
        case "1":
            if fields["aof_last_write_status"].map({ $0 != "ok" }) ?? false {
                problems.append(
                    "The last write of the server's append-only file failed. See its log; usually the disk is full.")
            }
        case "0":
            warnings.append(
                "The server does not persist each change (appendonly no): acknowledged writes are lost when it ends. Set appendonly yes."
            )
        default: break
        }
        if durability == .synced, fields["aof_enabled"] == "0" {
            problems.append("The server does not persist changes, and durability is .synced. Set appendonly yes.")
        }
        // The field exists only if the setting is above 0.
        if hasSentinels, durability.confirmation == nil, fields["min_slaves_good_slaves"] == nil {
            warnings.append(
                "The server acknowledges writes without a replica (min-replicas-to-write 0): after a network partition from the sentinels, "
                    + "acknowledged writes are lost. Set min-replicas-to-write 1 and min-replicas-max-lag 2, or use "
                    + "durability .replicated(1).")
        }
        if case .replicated(let needed, _) = durability.kind {
            let count = fields["connected_slaves"].flatMap { Int($0) } ?? 0
            if count < needed {
                problems.append(
                    "The server has \(count.counted("replica")), and durability is .replicated(\(needed)). Connect \(needed - count) more."
                )
            }
        }
    }
}
