/// One thing that a hostile client does. A step is a word of a schedule: `say*10:{"type":"cancel"}`.
enum Step: Equatable, Sendable {
    /// Takes little: the buffer of the socket for what comes is so many bytes. Before the connection is made.
    case receiveBuffer(Int)
    /// Asks for the upgrade, in version 3 or without subprotocol, and waits for the answer.
    case upgrade(version: Int)
    case bytes(StepText, count: Int)
    /// A frame of text.
    case say(StepText, count: Int)
    /// A frame of bytes.
    case binary(StepText, count: Int)
    /// A frame of text that has to be answered, within so many milliseconds and what the machine is granted.
    /// With a code, the answer is that error: `timeout` for what takes longer than the call's own limit.
    case ask(StepText, milliseconds: Int, code: String? = nil, count: Int)
    /// A frame whose first byte is this; it says that it has so many bytes of payload, or, with nil, as many as it has.
    case frame(first: Int, isMasked: Bool, claimed: Int?, StepText)
    /// A message in fragments of so many bytes.
    case split(Int, StepText)
    /// What follows is gathered until it is sent.
    case hold
    case send
    /// Sends so many of the gathered bytes; the others are forgotten.
    case cut(Int)
    /// Sends what was gathered in pieces of so many bytes.
    case pieces(Int)
    /// Sends so many of the gathered bytes, waits, and sends the others.
    case stall(Int, milliseconds: Int)
    /// Reads so many messages; at most two seconds for each.
    case read(Int)
    /// Reads whatever comes for so long.
    case listen(milliseconds: Int)
    /// Reads until all that was asked is answered.
    case settle
    case pause(milliseconds: Int)
    /// TLS 1.3: asks for new keys so many times.
    case newKeys(Int)
    // The ends. Without one the connection is closed.
    case reset
    case close
    /// Ends the writing, and reads to the end.
    case finish
    /// A close frame with this code; then it reads to the end.
    case bye(Int)
    /// Stays, and neither reads nor writes, until all leave.
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

    /// Reads a word; nil when it is none.
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

    /// The same fewer times; nil when once is all it was.
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
