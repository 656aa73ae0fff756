/// Whether a server can be relied on, from what its INFO says.
struct RedisFitness: Equatable {
    /// With one of them it is not used. A sentence or two each: what is wrong, and how to put it right.
    private(set) var problems: [String] = []
    /// What may be lost.
    private(set) var warnings: [String] = []

    /// - Parameter hasSentinels: whether sentinels put another server in its place.
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
            problems.append("The server does not tell its version. Let the user of the URL call INFO (ACL: +info).")
        }
        if let policy = fields["maxmemory_policy"], policy != "noeviction" {
            problems.append(
                "The server throws away what it keeps when memory is short (maxmemory-policy \(policy)). Set maxmemory-policy noeviction."
            )
        }
        switch fields["aof_enabled"] {
        case "1":
            if fields["aof_last_write_status"].map({ $0 != "ok" }) ?? false {
                problems.append(
                    "The server could not write its append-only file last time. See its log; usually the disk is full.")
            }
        case "0":
            warnings.append(
                "The server does not write each change to a disk (appendonly no): what was acknowledged is lost when it ends. Set appendonly yes."
            )
        default: break
        }
        if durability == .synced, fields["aof_enabled"] == "0" {
            problems.append("The server writes nothing to a disk, and durability is .synced. Set appendonly yes.")
        }
        // The field is there only where the setting is above 0.
        if hasSentinels, durability.confirmation == nil, fields["min_slaves_good_slaves"] == nil {
            warnings.append(
                "The server acknowledges writes while no replica takes them (min-replicas-to-write 0): when it is cut off from the sentinels, "
                    + "what it acknowledges until nodes leave it is lost. Set min-replicas-to-write 1 and min-replicas-max-lag 2, or use "
                    + "durability .replicated(1).")
        }
        if case .replicated(let needed, _) = durability.kind {
            let count = fields["connected_slaves"].flatMap { Int($0) } ?? 0
            if count < needed {
                problems.append(
                    "The server has \(count) replicas, and durability is .replicated(\(needed)). Connect \(needed - count) more."
                )
            }
        }
    }
}
