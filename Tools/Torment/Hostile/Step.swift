/// One action of a hostile client. A step is a word of a schedule: `say*10:{"type":"cancel"}`.
enum Step: Equatable, Sendable {
    /// Sets the size of the socket's receive buffer, before the connection is made.
    case receiveBuffer(Int)
    /// Requests the upgrade, in version 3 or without subprotocol, and waits for the response.
    case upgrade(version: Int)
    case bytes(StepText, count: Int)
    /// A text frame.
    case say(StepText, count: Int)
    /// A binary frame.
    case binary(StepText, count: Int)
    /// A text frame that must be answered within the given milliseconds plus the machine's allowance. With a code, the response is that
    /// error: `timeout` for a call that exceeds its own limit.
    case ask(StepText, milliseconds: Int, code: String? = nil, count: Int)
    /// A frame with this first byte; it claims the given payload length, or, with nil, its actual one.
    case frame(first: Int, isMasked: Bool, claimed: Int?, StepText)
    /// A message in fragments of the given size.
    case split(Int, StepText)
    /// Collects the following output until it is sent.
    case hold
    case send
    /// Sends the given number of collected bytes and drops the others.
    case cut(Int)
    /// Sends the collected bytes in pieces of the given size.
    case pieces(Int)
    /// Sends the given number of collected bytes, waits, and sends the others.
    case stall(Int, milliseconds: Int)
    /// Reads the given number of messages, at most two seconds for each.
    case read(Int)
    /// Reads all input for the given time.
    case listen(milliseconds: Int)
    /// Reads until all calls are answered.
    case settle
    case pause(milliseconds: Int)
    /// TLS 1.3: requests new keys the given number of times.
    case newKeys(Int)
    // The ends. Without one the connection is closed.
    case reset
    case close
    /// Closes the sending side, and reads to the end.
    case finish
    /// A close frame with this code; then it reads to the end.
    case bye(Int)
    /// Stays connected without reading or writing until all connections are closed.
    case leave
}

extension Step: CustomStringConvertible {
    var description: String {
        switch self {
        case .receiveBuffer(let size): "rcvbuf:\(size)"
        case .upgrade(let version): "upgrade:\(version)"
        case .bytes(let text, let count): Self.word("bytes", count) + ":\(text)"
        case .say(let text, let count): Self.word("say", count) + ":\(text)"
        case .binary(let text, let count): Self.word("binary", count) + ":\(text)"
        case .ask(let text, let limit, let code, let count):
            Self.word("ask", count) + ":\(limit)\(code.map { "=" + $0 } ?? ""):\(text)"
        case .frame(let first, let isMasked, let claimed, let text):
            "frame:\(first).\(isMasked ? 1 : 0).\(claimed.map(String.init) ?? "-"):\(text)"
        case .split(let size, let text): "split:\(size):\(text)"
        case .hold: "hold"
        case .send: "send"
        case .cut(let count): "cut:\(count)"
        case .pieces(let size): "pieces:\(size)"
        case .stall(let count, let milliseconds): "stall:\(count):\(milliseconds)"
        case .read(let count): "read:\(count)"
        case .listen(let milliseconds): "listen:\(milliseconds)"
        case .settle: "settle"
        case .pause(let milliseconds): "pause:\(milliseconds)"
        case .newKeys(let count): "newkeys:\(count)"
        case .reset: "reset"
        case .close: "close"
        case .finish: "finish"
        case .bye(let code): "bye:\(code)"
        case .leave: "leave"
        }
    }

    private static func word(_ verb: String, _ count: Int) -> String { count == 1 ? verb : "\(verb)*\(count)" }

    /// Parses a word; nil for an invalid one.
    init?(_ word: Substring) {
        let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let head = parts[0].split(separator: "*")
        guard let verb = head.first else { return nil }
        let count = head.count == 2 ? Int(head[1]) ?? 1 : 1
        let rest = parts.count == 2 ? parts[1] : ""
        let number = Int(rest) ?? 0
        let pair = rest.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let (first, second) = (Int(pair.first ?? "") ?? 0, pair.count == 2 ? String(pair[1]) : "")
        switch verb {
        case "rcvbuf": self = .receiveBuffer(number)
        case "upgrade": self = .upgrade(version: number)
        case "bytes": self = .bytes(StepText(String(rest)), count: count)
        case "say": self = .say(StepText(String(rest)), count: count)
        case "binary": self = .binary(StepText(String(rest)), count: count)
        case "ask":
            let marks = (pair.first ?? "").split(separator: "=")
            let code = marks.count == 2 ? String(marks[1]) : nil
            self = .ask(StepText(second), milliseconds: Int(marks.first ?? "") ?? 0, code: code, count: count)
        case "frame":
            let marks = (pair.first ?? "").split(separator: ".")
            guard marks.count == 3, let opcode = Int(marks[0]) else { return nil }
            self = .frame(first: opcode, isMasked: marks[1] == "1", claimed: Int(marks[2]), StepText(second))
        case "split": self = .split(max(1, first), StepText(second))
        case "hold": self = .hold
        case "send": self = .send
        case "cut": self = .cut(number)
        case "pieces": self = .pieces(max(1, number))
        case "stall": self = .stall(first, milliseconds: Int(second) ?? 0)
        case "read": self = .read(number)
        case "listen": self = .listen(milliseconds: number)
        case "settle": self = .settle
        case "pause": self = .pause(milliseconds: number)
        case "newkeys": self = .newKeys(number)
        case "reset": self = .reset
        case "close": self = .close
        case "finish": self = .finish
        case "bye": self = .bye(number)
        case "leave": self = .leave
        default: return nil
        }
    }

    /// Half of the repetitions; nil for a single one.
    var halved: Step? {
        switch self {
        case .bytes(let text, let count) where count > 1: .bytes(text, count: count / 2)
        case .say(let text, let count) where count > 1: .say(text, count: count / 2)
        case .binary(let text, let count) where count > 1: .binary(text, count: count / 2)
        case .ask(let text, let limit, let code, let count) where count > 1:
            .ask(text, milliseconds: limit, code: code, count: count / 2)
        case .newKeys(let count) where count > 1: .newKeys(count / 2)
        default: nil
        }
    }
}
