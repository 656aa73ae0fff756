package import TrebuchetActors
internal import Transports

/// One log line before it is formatted.
package struct LogRecord {
    /// The value of a field.
    package enum Value: Equatable {
        case text(String)
        case number(Double)
    }

    package let level: ServerEvent.Level
    package let message: String
    package var fields: [(name: String, value: Value)] = []
    /// The kind of line for rate limiting; nil for lines that are always written.
    var pause: String?

    init(_ level: ServerEvent.Level, _ message: String) {
        self.level = level
        self.message = message
    }

    /// Creates the line of an event; nil for events that are not logged.
    package init?(_ event: ServerEvent) {
        switch event {
        case .connectionOpened(let peer):
            self.init(.info, "connection opened")
            addFields(of: peer)
        case .connectionClosed(let peer, let duration, let closing):
            self.init(.info, "connection closed")
            addFields(of: peer)
            addField("seconds", duration)
            addField("cause", closing.cause.rawValue)
            if let code = closing.code { addField("code", code) }
            if !closing.reason.isEmpty { addField("reason", closing.reason) }
        case .connectionRejected(let address, let status, let reason):
            self.init(RejectionLog.isCommon(status) ? .info : .notice, "request rejected")
            if let address { addField("address", "\(address)") }
            addField("status", status)
            addField("reason", reason)
            pause = "request rejected \(status)"
        case .authenticated(let peer):
            self.init(.info, peer.principal == nil ? "signed out" : "signed in")
            addFields(of: peer)
        case .callStarted(let call):
            self.init(.trace, "call started")
            addFields(of: call)
        case .callEnded(let call, let duration, let error):
            self.init(.debug, error == nil ? "call ended" : "call failed")
            addFields(of: call)
            addField("seconds", duration)
            if let error { addField("error", "\(error)") }
        case .callFailed(let failure):
            guard let thrown = failure.errorDescription else { return nil }
            self.init(.debug, "call error")
            addField("call", failure.call)
            addField("thrown", thrown)
            if let number = failure.errorCode { addField("number", number) }
        case .callRejected(let peer, let actor, let target, let error, let reason):
            self.init(.debug, "call rejected")
            addFields(of: peer)
            addField("actor", name: actor)
            addField("method", name: target)
            addField("error", "\(error)")
            addField("reason", reason)
        default:
            self.init(ofStreams: event)
        }
    }

    private init?(ofStreams event: ServerEvent) {
        switch event {
        case .versionCreated(let version):
            self.init(.trace, "version created")
            addFields(of: version.stream)
            addField("version", version.number)
            addField("bytes", version.bytes)
            if !version.calls.isEmpty { addField("calls", version.calls.map { "\($0)" }.joined(separator: ",")) }
        case .updateDelivered(let delivery):
            self.init(.trace, "update delivered")
            addField("connection", delivery.connection)
            addFields(of: delivery.stream)
            addField("version", delivery.number)
            addField("kind", delivery.form.rawValue)
            addField("bytes", delivery.bytes)
        case .versionsConflated(let stream, let connection, let from, let to):
            self.init(.trace, "versions conflated")
            addField("connection", connection)
            addFields(of: stream)
            addField("from", from)
            addField("version", to)
        case .subscriberFellBehind(let stream, let connection, let number):
            self.init(.trace, "subscriber blocked")
            addField("connection", connection)
            addFields(of: stream)
            addField("version", number)
        case .streamStarted(let stream, let peer, let start):
            self.init(.debug, "stream started")
            addFields(of: peer)
            addFields(of: stream)
            addField("start", start.rawValue)
        case .streamEnded(let stream, let connection, let reason):
            self.init(.debug, "stream ended")
            addField("connection", connection)
            addFields(of: stream)
            addField("reason", reason)
        default:
            self.init(ofServer: event)
        }
    }

    private init?(ofServer event: ServerEvent) {
        switch event {
        case .actorActivated(let name, let type), .actorDeactivated(let name, let type):
            if case .actorActivated = event {
                self.init(.debug, "actor activated")
            } else {
                self.init(.debug, "actor deactivated")
            }
            addField("type", type)
            addField("actor", name: name)
        case .storeWriteCompleted(let actors, let duration, let error):
            self.init(error == nil ? .debug : .error, error == nil ? "store write completed" : "store write failed")
            addField("actors", actors)
            addField("seconds", duration)
            if let error {
                addField("error", error)
                pause = "store write failed"
            }
        case .limitReached(let setting, let peer):
            self.init(.warning, "limit reached")
            addField("limit", setting)
            if let peer { addFields(of: peer) }
            pause = "limit \(setting)"
        case .reactorStalled(let reactor, let activity, let milliseconds, let isOver):
            self.init(.warning, isOver ? "reactor was blocked" : "reactor is blocked")
            addField("reactor", reactor)
            addField("activity", activity)
            addField("seconds", .milliseconds(milliseconds))
        case .serverDraining: self.init(.notice, "draining: not ready")
        case .serverStopped: self.init(.notice, "stopped")
        case .slotAcquired(let slot, let fence):
            self.init(.debug, "slot acquired")
            addField("slot", slot)
            addField("fence", fence)
        case .slotLost(let slot):
            self.init(.debug, "slot lost")
            addField("slot", slot)
        case .spanEnded: return nil
        case .logMessage(let level, let text): self.init(level, text)
        default: return nil
        }
    }

    // MARK: Fields

    private mutating func addField(_ name: String, _ value: String) { fields.append((name, .text(LogLine.of(value)))) }
    /// Adds the name of an actor, method or principal.
    private mutating func addField(_ name: String, name value: String) {
        fields.append((name, .text(LogLine.ofName(value))))
    }
    private mutating func addField(_ name: String, _ value: some BinaryInteger) {
        fields.append((name, .number(Double(value))))
    }
    private mutating func addField(_ name: String, _ time: Duration) {
        fields.append((name, .number(time / .seconds(1))))
    }

    private mutating func addFields(of peer: ServerEvent.Peer) {
        addField("connection", peer.connection)
        if let address = peer.address { addField("address", "\(address)") }
        if let principal = peer.principal { addField("principal", name: principal) }
    }

    private mutating func addFields(of call: ServerEvent.Call) {
        addField("call", call.number)
        addFields(of: call.peer)
        addField("type", call.type)
        addField("actor", name: call.actor)
        addField("method", call.method)
        if let trace = call.trace { addField("trace", trace.traceID) }
    }

    private mutating func addFields(of stream: ServerEvent.Stream) {
        addField("type", stream.type)
        addField("actor", name: stream.actor)
        addField("stream", stream.target)
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
