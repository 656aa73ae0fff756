import TrebuchetCLI

/// A fault of a server, whatever its clients do.
enum Finding: Sendable, CustomStringConvertible {
    case died(String)
    case noAnswer(String)
    /// It uses the processor without requests.
    case busy(String)
    /// Something remains after its owner has gone.
    case leftover([String], String)
    case memory(String)
    /// A correct client did not get its responses.
    case owed(String)
    case honest(String)
    /// The honest clients waited for longer than `--p99` allows.
    case slow(String)

    /// An identifier of equal findings in two runs.
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

    /// True if it can only be seen by checking an idle server.
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

    /// True if two findings probably have the same cause.
    func isLike(_ other: Finding) -> Bool {
        if case .leftover(let mine, _) = self, case .leftover(let others, _) = other {
            return !Set(mine).isDisjoint(with: others)
        }
        return kind == other.kind
    }
}
