internal import TrebuchetActors
internal import Transports

/// One log line before it is formatted.
struct LogRecord {
    /// The value of a field.
    enum Value: Equatable {
        case text(String)
        case number(Double)
    }

    let level: ServerEvent.Level
    let message: String
    var fields: [(name: String, value: Value)] = []
    /// The kind of line for rate limiting; nil for lines that are always written.
    var pause: String?

    init(_ level: ServerEvent.Level, _ message: String) {
        self.level = level
        self.message = message
    }

    /// Creates the line of an event; nil for events that are not logged.
    init?(_ event: ServerEvent) {
        switch event {
        case .connectionOpened(let peer):
            self.init(.info, "connection opened")
            add(peer)
        case .connectionClosed(let peer, let lasted, let why):
            self.init(.info, "connection closed")
            add(peer)
            add("seconds", lasted)
            add("cause", why.cause.rawValue)
            if let code = why.code { add("code", code) }
            if !why.reason.isEmpty { add("reason", why.reason) }
        case .connectionRefused(let address, let status, let reason):
            self.init(RejectionLog.isCommon(status) ? .info : .notice, "refused")
            if let address { add("address", "\(address)") }
            add("status", status)
            add("reason", reason)
            pause = "refused \(status)"
        case .authenticated(let peer):
            self.init(.info, peer.principal == nil ? "signed out" : "signed in")
            add(peer)
        case .callBegan(let call):
            self.init(.trace, "call began")
            add(call)
        case .callEnded(let call, let took, let error):
            self.init(.debug, error == nil ? "call" : "call failed")
            add(call)
            add("seconds", took)
            if let error { add("error", "\(error)") }
        case .callFailed(let failure):
            guard let thrown = failure.thrown else { return nil }
            self.init(.debug, "error of a call")
            add("call", failure.call)
            add("thrown", thrown)
            if let number = failure.number { add("number", number) }
        case .callRefused(let peer, let actor, let target, let error, let reason):
            self.init(.debug, "call refused")
            add(peer)
            add("actor", named: actor)
            add("method", named: target)
            add("error", "\(error)")
            add("reason", reason)
        default:
            self.init(ofStreams: event)
        }
    }

    private init?(ofStreams event: ServerEvent) {
        switch event {
        case .versionMade(let version):
            self.init(.trace, "version")
            add(version.stream)
            add("version", version.number)
            add("bytes", version.bytes)
            if !version.calls.isEmpty { add("calls", version.calls.map { "\($0)" }.joined(separator: ",")) }
        case .delivered(let delivery):
            self.init(.trace, "delivered")
            add("connection", delivery.connection)
            add(delivery.stream)
            add("version", delivery.number)
            add("kind", delivery.form.rawValue)
            add("bytes", delivery.bytes)
        case .skipped(let stream, let connection, let from, let to):
            self.init(.trace, "skipped")
            add("connection", connection)
            add(stream)
            add("behind", from)
            add("version", to)
        case .behind(let stream, let connection, let number):
            self.init(.trace, "behind")
            add("connection", connection)
            add(stream)
            add("version", number)
        case .streamBegan(let stream, let peer, let beginning):
            self.init(.debug, "stream began")
            add(peer)
            add(stream)
            add("beginning", beginning.rawValue)
        case .streamEnded(let stream, let connection, let reason):
            self.init(.debug, "stream ended")
            add("connection", connection)
            add(stream)
            add("reason", reason)
        default:
            self.init(ofServer: event)
        }
    }

    private init?(ofServer event: ServerEvent) {
        switch event {
        case .actorMade(let name, let type), .actorLetGo(let name, let type):
            if case .actorMade = event { self.init(.debug, "actor made") } else { self.init(.debug, "actor let go") }
            add("type", type)
            add("actor", named: name)
        case .stored(let actors, let took, let error):
            self.init(error == nil ? .debug : .error, error == nil ? "stored" : "not stored")
            add("actors", actors)
            add("seconds", took)
            if let error {
                add("error", error)
                pause = "not stored"
            }
        case .limitReached(let setting, let peer):
            self.init(.warning, "limit reached")
            add("limit", setting)
            if let peer { add(peer) }
            pause = "limit \(setting)"
        case .reactorHeld(let reactor, let activity, let milliseconds, let isOver):
            self.init(.warning, isOver ? "reactor was held" : "reactor is held")
            add("reactor", reactor)
            add("by", activity)
            add("seconds", .milliseconds(milliseconds))
        case .draining: self.init(.notice, "to end: not ready any more")
        case .ended: self.init(.notice, "ended")
        case .slotTaken(let slot, let fence):
            self.init(.debug, "slot taken")
            add("slot", slot)
            add("fence", fence)
        case .slotLost(let slot):
            self.init(.debug, "slot lost")
            add("slot", slot)
        case .spanEnded: return nil
        case .line(let level, let text): self.init(level, text)
        default: return nil
        }
    }

    // MARK: Fields

    private mutating func add(_ name: String, _ value: String) { fields.append((name, .text(LogLine.of(value)))) }
    /// Adds the name of an actor, method or principal.
    private mutating func add(_ name: String, named value: String) {
        fields.append((name, .text(LogLine.ofName(value))))
    }
    private mutating func add(_ name: String, _ value: some BinaryInteger) {
        fields.append((name, .number(Double(value))))
    }
    private mutating func add(_ name: String, _ time: Duration) { fields.append((name, .number(time / .seconds(1)))) }

    private mutating func add(_ peer: ServerEvent.Peer) {
        add("connection", peer.connection)
        if let address = peer.address { add("address", "\(address)") }
        if let principal = peer.principal { add("principal", named: principal) }
    }

    private mutating func add(_ call: ServerEvent.Call) {
        add("call", call.number)
        add(call.peer)
        add("type", call.type)
        add("actor", named: call.actor)
        add("method", call.method)
        if let trace = call.trace { add("trace", trace.traceID) }
    }

    private mutating func add(_ stream: ServerEvent.Stream) {
        add("type", stream.type)
        add("actor", named: stream.actor)
        add("stream", stream.target)
    }

    // MARK: Formats

    func text(at time: String) -> String {
        // Quote messages that contain field syntax, so that text from peers is not parsed as fields.
        let isPlain = message.utf8.allSatisfy { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") }
        var line = "\(time) \(level.rawValue) \(isPlain ? message : Self.quoted(message))"
        for (name, value) in fields {
            switch value {
            case .number(let number): line += " \(name)=\(Self.number(number))"
            case .text(let text):
                let isPlain =
                    !text.isEmpty
                    && text.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") }
                line += " \(name)=\(isPlain ? text : Self.quoted(text))"
            }
        }
        return line
    }

    func json(at time: String) -> String {
        var line = "{\"time\":\"\(time)\",\"level\":\"\(level.rawValue)\",\"message\":\(Self.quoted(message))"
        for (name, value) in fields {
            switch value {
            case .number(let number): line += ",\"\(name)\":\(Self.number(number))"
            case .text(let text): line += ",\"\(name)\":\(Self.quoted(text))"
            }
        }
        return line + "}"
    }

    private static func number(_ value: Double) -> String { MetricsText.number(value) }

    /// Returns a JSON string literal. Control characters were escaped before, for all formats.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
