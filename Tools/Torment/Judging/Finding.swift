import TrebuchetCLI

/// What a server may not do, whatever its clients do.
enum Finding: Sendable, CustomStringConvertible {
    case died(String)
    case noAnswer(String)
    /// It computes although nobody has asked for anything.
    case busy(String)
    /// Something is still there although those whom it was for have gone.
    case leftover([String], String)
    case memory(String)
    /// A client that was right did not get what it is owed.
    case owed(String)
    case honest(String)
    /// The honest clients had to wait for longer than `--p99` allows.
    case slow(String)

    /// What the same finding has in common in two runs.
    var kind: String {
        switch self {
        case .died: "died"
        case .noAnswer: "noAnswer"
        case .busy: "busy"
        case .leftover: "leftover"
        case .memory: "memory"
        case .owed: "owed"
        case .honest: "honest"
        case .slow: "slow"
        }
    }

    /// Whether it takes a look at a server at rest to see it.
    var isSeenByLooking: Bool { !["died", "owed", "honest", "slow"].contains(kind) }
    var isDeath: Bool { kind == "died" }
    var isMemory: Bool { kind == "memory" }

    var description: String {
        switch self {
        case .died(let text), .noAnswer(let text), .busy(let text), .leftover(_, let text), .memory(let text),
            .owed(let text), .honest(let text), .slow(let text):
            text
        }
    }

    /// Whether two findings have the same cause, as far as can be told.
    func isLike(_ other: Finding) -> Bool {
        if case .leftover(let mine, _) = self, case .leftover(let others, _) = other {
            return !Set(mine).isDisjoint(with: others)
        }
        return kind == other.kind
    }
}
