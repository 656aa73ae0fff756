import TrebuchetCluster

/// Sequences of steps with the same outcomes for every engine.
struct EngineScenario: Sendable, CustomStringConvertible {
    let description: String
    var limits = ClusterEngineLimits()
    let steps: [EngineStep]

    init(_ description: String, limits: ClusterEngineLimits = ClusterEngineLimits(), _ steps: [EngineStep]) {
        (self.description, self.limits, self.steps) = (description, limits, steps)
    }

    static let all = slots + losses + appends + calls + readings + removals

    private static func at(_ fence: UInt64, _ offset: UInt64) -> LogPosition {
        LogPosition(fence: fence, offset: offset)
    }

    private static func limits(_ change: (inout ClusterEngineLimits) -> Void) -> ClusterEngineLimits {
        var limits = ClusterEngineLimits()
        change(&limits)
        return limits
    }

    private static let slots = [
        EngineScenario(
            "a slot has one owner, and the fence increases with the next one",
            [
                .holder("nobody"), .acquire("a", "acquired 1"), .holder("a 1"), .acquire("b", "held by a 1"),
                .acquire("a", "acquired 1"),
                .release("b", fence: 1, "false"), .release("a", fence: 1, "true"),
                .holder("nobody"),
                .release("a", fence: 1, "false"), .acquire("b", "acquired 2"), .renew("a", fence: 1, "false"),
                .renew("b", fence: 1, "false"),
                .renew("b", fence: 2, "true"), .release("b", fence: 2, "true"), .acquire("b", "acquired 3"),
                .holder("b 3"),
            ]),
        EngineScenario(
            "an expired lease is acquired by another node",
            [
                .acquire("a", duration: EngineRig.short, "acquired 1"), .pass, .acquire("b", "acquired 2"),
                .acquire("a", "held by b 2"),
                .renew("a", fence: 1, "false"), .release("a", fence: 1, "false"), .holder("b 2"),
            ]),
        EngineScenario(
            "an expired lease that no other node has acquired is renewed",
            [
                .acquire("a", duration: EngineRig.short, "acquired 1"), .pass, .renew("a", fence: 1, "true"),
                .holder("a 1"),
                .acquire("b", "held by a 1"),
            ]),
        EngineScenario(
            "the owner acquires the slot again with the same fence",
            [
                .acquire("a", duration: EngineRig.short, "acquired 1"), .pass, .acquire("a", "acquired 1"),
                .holder("a 1"),
            ]),
    ]

    private static let losses = [
        EngineScenario(
            "a node with a higher fence than the engine's receives data loss",
            [
                .renew("a", fence: 1, "data loss"), .release("a", fence: 1, "data loss"),
                .append("a", fence: 1, top: 0, "x", "data loss"), .store("a", fence: 1, at: 0, "x", "data loss"),
                .acquire("b", "acquired 1"), .renew("a", fence: 2, "data loss"), .renew("b", fence: 2, "data loss"),
                .release("a", fence: 2, "data loss"), .append("a", fence: 2, top: 0, "x", call: "c", "data loss"),
                .reply("c", "none"), .store("b", fence: 2, at: 0, "x", "data loss"), .holder("b 1"),
                .read(nil, "start top 0:0"), .renew("a", fence: 1, "false"), .renew("b", fence: 1, "true"),
            ])
    ]

    private static let appends = [
        EngineScenario(
            "entries are consecutive, and only the owner writes them",
            [
                .acquire("a", "acquired 1"),
                .append("a", fence: 1, top: 0, "x", "accepted 1"),
                .append("a", fence: 1, top: 1, "y", "accepted 2"), .append("a", fence: 1, top: 1, "z", "top 2"),
                .append("a", fence: 1, top: 3, "z", "top 2"), .append("b", fence: 1, top: 2, "z", "fenced 1"),
                .append("a", fence: 1, top: 2, "", "accepted 3"),
                .read(.start, "resumed 1:1=x 1:2=y 1:3= top 1:3"),
            ]),
        EngineScenario(
            "an owner suspended for longer than its lease cannot write any more",
            [
                .acquire("a", duration: EngineRig.short, "acquired 1"),
                .append("a", fence: 1, top: 0, "x", "accepted 1"), .pass,
                .append("a", fence: 1, top: 1, "y", "lease over"), .acquire("b", "acquired 2"),
                .append("a", fence: 1, top: 1, "y", "fenced 2"), .store("a", fence: 1, at: 1, "all", "fenced 2"),
                .append("b", fence: 2, top: 1, "z", "accepted 2"), .append("a", fence: 1, top: 2, "y", "fenced 2"),
                .read(nil, "start 1:1=x 2:2=z top 2:2"),
            ]),
        EngineScenario(
            "an owner whose lease is renewed continues to write",
            [
                .acquire("a", duration: EngineRig.short, "acquired 1"), .pass,
                .append("a", fence: 1, top: 0, "x", "lease over"),
                .store("a", fence: 1, at: 0, "all", "lease over"), .renew("a", fence: 1, "true"),
                .append("a", fence: 1, top: 0, "x", "accepted 1"),
            ]),
        EngineScenario(
            "a node that released its slot cannot write any more",
            [
                .acquire("a", "acquired 1"), .release("a", fence: 1, "true"),
                .append("a", fence: 1, top: 0, "x", "fenced 1"),
            ]),
        EngineScenario(
            "a full log accepts no entry before a snapshot", limits: limits { $0.entriesPerLog = 2 },
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, "x", "accepted 1"),
                .append("a", fence: 1, top: 1, "y", "accepted 2"),
                .append("a", fence: 1, top: 2, "z", "full"), .store("a", fence: 1, at: 2, "xy", keeping: 1, "stored"),
                .append("a", fence: 1, top: 2, "z", "accepted 3"), .append("a", fence: 1, top: 3, "!", "full"),
                .append("a", fence: 1, top: 3, nil, call: "c", reply: "r", "accepted 3"),
            ]),
    ]

    private static let calls = [
        EngineScenario(
            "a repeated call gets its reply, and appends nothing",
            [
                .acquire("a", "acquired 1"), .reply("c", "none"),
                .append("a", fence: 1, top: 0, "x", call: "c", reply: "ok", "accepted 1"),
                .append("a", fence: 1, top: 0, "x", call: "c", reply: "other", "repeated ok"),
                .append("a", fence: 1, top: 1, "x", call: "c", reply: "other", "repeated ok"), .reply("c", "ok"),
                .reply("d", "none"),
                .append("a", fence: 1, top: 1, "y", call: "d", reply: "", "accepted 2"), .reply("d", ""),
                .append("a", fence: 1, top: 2, "y", call: "d", "repeated "),
                .read(.start, "resumed 1:1=x 1:2=y top 1:2"),
            ]),
        EngineScenario(
            "the next owner has the recorded calls of the previous one",
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, "x", call: "c", reply: "ok", "accepted 1"),
                .release("a", fence: 1, "true"),
                .append("a", fence: 1, top: 0, "x", call: "c", reply: "ok", "fenced 1"),
                .acquire("b", "acquired 2"),
                .append("b", fence: 2, top: 1, "x", call: "c", reply: "new", "repeated ok"),
            ]),
        EngineScenario(
            "a call that changed nothing is recorded",
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, nil, call: "c", reply: "no", "accepted 0"),
                .append("a", fence: 1, top: 0, nil, call: "c", reply: "no", "repeated no"), .read(nil, "start top 0:0"),
                .append("a", fence: 1, top: 1, nil, call: "d", reply: "no", "top 0"), .reply("d", "none"),
            ]),
        EngineScenario(
            "the oldest reply is evicted", limits: limits { $0.repliesPerLog = 2 },
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, nil, call: "c", reply: "1", "accepted 0"),
                .append("a", fence: 1, top: 0, nil, call: "d", reply: "2", "accepted 0"),
                .append("a", fence: 1, top: 0, nil, call: "e", reply: "3", "accepted 0"), .reply("c", "none"),
                .reply("d", "2"), .reply("e", "3"),
            ]),
    ]

    private static let readings = [
        EngineScenario(
            "a reader resumes at its position, and starts again with a wrong fence",
            [
                .read(nil, "start top 0:0"), .read(.start, "resumed top 0:0"), .read(at(1, 4), "start top 0:0"),
                .acquire("a", "acquired 1"),
                .append("a", fence: 1, top: 0, "x", "accepted 1"), .append("a", fence: 1, top: 1, "y", "accepted 2"),
                .release("a", fence: 1, "true"), .acquire("b", "acquired 2"),
                .append("b", fence: 2, top: 2, "z", "accepted 3"),
                .read(at(1, 1), "resumed 1:2=y 2:3=z top 2:3"), .read(at(1, 2), "resumed 2:3=z top 2:3"),
                .read(at(2, 3), "resumed top 2:3"),
                .read(at(1, 3), "start 1:1=x 1:2=y 2:3=z top 2:3"), .read(at(2, 2), "start 1:1=x 1:2=y 2:3=z top 2:3"),
                .read(at(2, 4), "start 1:1=x 1:2=y 2:3=z top 2:3"), .read(at(2, 0), "start 1:1=x 1:2=y 2:3=z top 2:3"),
                .store("b", fence: 2, at: 2, "xy", keeping: 10, "stored"),
                .read(at(1, 3), "snapshot 1:2=xy 2:3=z top 2:3"),
                .read(at(1, 1), "resumed 1:2=y 2:3=z top 2:3"), .read(.start, "resumed 1:1=x 1:2=y 2:3=z top 2:3"),
            ]),
        EngineScenario(
            "a reader before the truncated part gets the snapshot",
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, "x", "accepted 1"),
                .append("a", fence: 1, top: 1, "y", "accepted 2"),
                .append("a", fence: 1, top: 2, "z", "accepted 3"),
                .store("a", fence: 1, at: 2, "xy", keeping: 1, "stored"),
                .read(.start, "snapshot 1:2=xy 1:3=z top 1:3"), .read(at(1, 1), "snapshot 1:2=xy 1:3=z top 1:3"),
                .read(at(1, 2), "resumed 1:3=z top 1:3"), .store("a", fence: 1, at: 3, "xyz", "stored"),
                .read(at(1, 3), "resumed top 1:3"), .read(at(1, 2), "snapshot 1:3=xyz top 1:3"),
                .read(nil, "snapshot 1:3=xyz top 1:3"),
                .append("a", fence: 1, top: 3, "!", "accepted 4"), .read(at(1, 3), "resumed 1:4=! top 1:4"),
                .read(nil, "snapshot 1:3=xyz 1:4=! top 1:4"),
            ]),
        EngineScenario(
            "a snapshot belongs to an entry, and not before an existing snapshot",
            [
                .acquire("a", "acquired 1"), .store("a", fence: 1, at: 1, "no", "misplaced"),
                .store("a", fence: 1, at: 0, "zero", "stored"),
                .read(nil, "snapshot 0:0=zero top 0:0"), .append("a", fence: 1, top: 0, "x", "accepted 1"),
                .append("a", fence: 1, top: 1, "y", "accepted 2"), .store("a", fence: 1, at: 3, "no", "misplaced"),
                .store("a", fence: 1, at: 2, "xy", "stored"), .store("a", fence: 1, at: 1, "x", "misplaced"),
                .store("a", fence: 1, at: 2, "again", "stored"), .store("b", fence: 1, at: 2, "no", "fenced 1"),
                .read(nil, "snapshot 1:2=again top 1:2"),
            ]),
        EngineScenario(
            "pages have no gaps, with a limit of entries",
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, "x", "accepted 1"),
                .append("a", fence: 1, top: 1, "y", "accepted 2"),
                .append("a", fence: 1, top: 2, "z", "accepted 3"), .read(nil, limit: 2, "start 1:1=x 1:2=y top 1:3 …"),
                .read(at(1, 2), limit: 2, "resumed 1:3=z top 1:3"),
                .read(at(1, 1), limit: 0, "resumed 1:2=y top 1:3 …"),
            ]),
        EngineScenario(
            "pages have no gaps, with a limit of bytes and at least one entry", limits: limits { $0.readBytes = 5 },
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, "1234567", "accepted 1"),
                .append("a", fence: 1, top: 1, "123", "accepted 2"),
                .append("a", fence: 1, top: 2, "12", "accepted 3"), .append("a", fence: 1, top: 3, "1", "accepted 4"),
                .read(nil, "start 1:1=1234567 top 1:4 …"), .read(at(1, 1), "resumed 1:2=123 1:3=12 top 1:4 …"),
                .read(at(1, 3), "resumed 1:4=1 top 1:4"),
            ]),
    ]

    private static let removals = [
        EngineScenario(
            "a removed log is empty, unless it has received further entries",
            [
                .acquire("a", "acquired 1"), .append("a", fence: 1, top: 0, "x", call: "c", reply: "ok", "accepted 1"),
                .store("a", fence: 1, at: 1, "x", "stored"), .append("a", fence: 1, top: 1, "y", "accepted 2"),
                .remove("a", fence: 1, at: 1, "misplaced"), .remove("b", fence: 1, at: 2, "fenced 1"),
                .read(.start, "snapshot 1:1=x 1:2=y top 1:2"),
                .remove("a", fence: 1, at: 2, "stored"), .read(nil, "start top 0:0"), .reply("c", "none"),
                .remove("a", fence: 1, at: 2, "misplaced"),
                .append("a", fence: 1, top: 0, "z", "accepted 1"), .read(nil, "start 1:1=z top 1:1"),
                .release("a", fence: 1, "true"), .remove("a", fence: 1, at: 1, "fenced 1"),
            ])
    ]
}
