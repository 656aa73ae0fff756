extension ScannedEnvelope {
    /// Reads a message. It is checked to the last byte; ranges are into `message`.
    package mutating func scan(_ message: UnsafeRawBufferPointer) throws(EnvelopeError) {
        // Ranges count in 32 bits.
        guard message.count <= Int(Int32.max) else { throw EnvelopeError("the message is 2 GiB or more") }
        removeAll()
        var cursor = JSONCursor(message)
        var kindName = ByteRange.absent
        var hasPayload = false
        do throws(EnvelopeError) {
            var seen = SeenMembers()
            try cursor.object { (cursor, member) throws(EnvelopeError) in
                switch member {
                case .type:
                    try seen.add(member)
                    kindName = try cursor.string()
                case .payload:
                    try seen.add(member)
                    hasPayload = true
                    try scanPayload(&cursor, message)
                default:
                    _ = try cursor.value(depth: 1)
                }
            }
            try cursor.expectEnd()
            guard !kindName.isAbsent else { throw EnvelopeError("the message has no 'type'") }
            guard hasPayload else { throw EnvelopeError("the message has no 'payload'") }
            try check(kindName, message)
        } catch {
            throw EnvelopeError(
                error.message, callID: isIdentifier(callID, message) ? string(callID, in: message) : nil)
        }
    }

    @inline(__always)
    private mutating func scanPayload(
        _ cursor: inout JSONCursor, _ message: UnsafeRawBufferPointer
    ) throws(EnvelopeError) {
        var seen = SeenMembers()
        try cursor.object { (cursor, member) throws(EnvelopeError) in
            try seen.add(member)
            switch member {
            case .callID: callID = try cursor.string()
            case .actorID: actorID = try scanActorID(&cursor)
            case .targetIdentifier: targetIdentifier = try cursor.string()
            case .arguments: try scanArguments(&cursor)
            case .genericSubstitutions: try scanGenericSubstitutions(&cursor)
            case .timeoutMilliseconds:
                timeoutMilliseconds = Int(clamping: try cursor.wholeNumber("timeoutMilliseconds"))
            case .protocolVersion: protocolVersion = Int(clamping: try cursor.wholeNumber("protocolVersion"))
            case .filter: filter = try cursor.value(depth: 2)
            case .streamFilter: streamFilter = try cursor.value(depth: 2)
            case .streamID: streamID = try cursor.string()
            case .reason: reason = try cursor.string()
            case .epoch: epoch = try cursor.string()
            case .lastSequence: lastSequence = try cursor.wholeNumber("lastSequence")
            case .sequenceNumber: sequenceNumber = try cursor.wholeNumber("sequenceNumber")
            case .timestamp: timestamp = try cursor.string()
            case .data: data = try cursor.value(depth: 2)
            case .base: base = try cursor.wholeNumber("base")
            case .patch: patch = try cursor.value(depth: 2)
            case .result: result = try cursor.value(depth: 2)
            case .error: try scanError(&cursor)
            case .code: code = try cursor.string()
            case .message, .errorMessage:
                hasError = true
                errorMessage = try cursor.string()
            case .reconnectAfterMilliseconds:
                reconnectAfterMilliseconds = Int(clamping: try cursor.wholeNumber("reconnectAfterMilliseconds"))
            default: _ = try cursor.value(depth: 2)
            }
        }
    }

    /// A name, or the object `{"id":…,"host":…,"port":…}` of older clients.
    @inline(__always)
    private func scanActorID(_ cursor: inout JSONCursor) throws(EnvelopeError) -> ByteRange {
        guard cursor.peek() == 0x7B else { return try cursor.string() }
        var id = ByteRange.absent
        var seen = SeenMembers()
        try cursor.object { (cursor, member) throws(EnvelopeError) in
            try seen.add(member)
            if member == .id { id = try cursor.string() } else { _ = try cursor.value(depth: 3) }
        }
        guard !id.isAbsent else { throw EnvelopeError("actorID has no 'id'") }
        return id
    }

    @inline(__always)
    private mutating func scanArguments(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        try cursor.array { (cursor) throws(EnvelopeError) in
            guard arguments.count < Self.mostArguments else {
                throw EnvelopeError("more than \(Self.mostArguments) arguments")
            }
            // A string of base64 is wanted without its quotes, any JSON value as it is: the version decides, later.
            arguments.append(try cursor.value(depth: 3))
        }
    }

    private mutating func scanGenericSubstitutions(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        try cursor.array { (cursor) throws(EnvelopeError) in
            guard genericSubstitutions.count < Self.mostArguments else {
                throw EnvelopeError("more than \(Self.mostArguments) generic substitutions")
            }
            genericSubstitutions.append(try cursor.string())
        }
    }

    private mutating func scanError(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        hasError = true
        var seen = SeenMembers()
        try cursor.object { (cursor, member) throws(EnvelopeError) in
            try seen.add(member)
            switch member {
            case .code: errorCode = try cursor.string()
            case .message: errorMessage = try cursor.string()
            case .type: errorType = try cursor.string()
            case .data: errorData = try cursor.value(depth: 3)
            default: _ = try cursor.value(depth: 3)
            }
        }
    }

    // MARK: What each kind needs

    @inline(__always)
    private mutating func check(_ name: ByteRange, _ message: UnsafeRawBufferPointer) throws(EnvelopeError) {
        let text = string(orBytes: name, message)
        guard let kind = text else { throw EnvelopeError("unknown type '\(string(name, in: message).prefix(64))'") }
        self.kind = kind
        switch kind {
        case .invocation:
            try need(callID, "callID", message)
            try needName(actorID, "actorID")
            try needName(targetIdentifier, "targetIdentifier")
        case .cancel, .response:
            try need(callID, "callID", message)
        case .streamStart:
            try need(streamID, "streamID", message)
            try need(callID, "callID", message)
        case .streamData:
            try need(streamID, "streamID", message)
            guard sequenceNumber != nil else { throw EnvelopeError("streamData: missing sequenceNumber") }
            guard data.isAbsent != patch.isAbsent else {
                throw EnvelopeError("streamData: exactly one of data and patch")
            }
        case .streamEnd, .streamError:
            try need(streamID, "streamID", message)
        case .streamResume:
            try need(streamID, "streamID", message)
            if !callID.isAbsent { try need(callID, "callID", message) }
            try needName(actorID, "actorID")
            try needName(targetIdentifier, "targetIdentifier")
        case .error, .goAway: break
        }
    }

    @inline(__always)
    private func string(orBytes name: ByteRange, _ message: UnsafeRawBufferPointer) -> EnvelopeKind? {
        name.isEscaped ? EnvelopeKind(rawValue: string(name, in: message)) : EnvelopeKind(name.bytes(in: message))
    }

    @inline(__always)
    private func need(
        _ identifier: ByteRange, _ name: StaticString, _ message: UnsafeRawBufferPointer
    ) throws(EnvelopeError) {
        if isIdentifier(identifier, message) { return }
        if identifier.isAbsent { throw EnvelopeError("\(kind): missing \(name)") }
        throw EnvelopeError("\(kind): \(name) must be 1 to \(Self.longestIdentifier) printable ASCII characters")
    }

    @inline(__always)
    private func needName(_ range: ByteRange, _ name: StaticString) throws(EnvelopeError) {
        guard !range.isAbsent, range.count > 0 else { throw EnvelopeError("\(kind): missing \(name)") }
    }

    @inline(__always)
    private func isIdentifier(_ range: ByteRange, _ message: UnsafeRawBufferPointer) -> Bool {
        guard !range.isAbsent, range.count > 0, range.count <= Self.longestIdentifier, !range.isEscaped else {
            return false
        }
        for byte in range.bytes(in: message) where byte < 0x20 || byte > 0x7E { return false }
        return true
    }
}

extension JSONCursor {
    /// Walks through an object; `body` takes the value of each member.
    @inline(__always)
    fileprivate mutating func object(
        _ body: (inout JSONCursor, EnvelopeMember) throws(EnvelopeError) -> Void
    ) throws(EnvelopeError) {
        try expect(0x7B)
        if take(0x7D) { return }
        while true {
            let name = try string()
            try expect(0x3A)
            try body(&self, member(name))
            if take(0x2C) { continue }
            guard take(0x7D) else { throw error("expected ',' or '}'") }
            return
        }
    }

    @inline(__always)
    private func member(_ name: ByteRange) -> EnvelopeMember {
        guard name.isEscaped else { return EnvelopeMember(base + Int(name.offset), Int(name.count)) }
        let bytes = UnsafeRawBufferPointer(start: base + Int(name.offset), count: Int(name.count))
        var text = JSONString.text(bytes, isEscaped: true)
        return text.withUTF8 { $0.isEmpty ? .unknown : EnvelopeMember($0.baseAddress!, $0.count) }
    }

    /// Walks through an array; `body` takes each value. `null` stands for an empty one.
    @inline(__always)
    fileprivate mutating func array(
        _ body: (inout JSONCursor) throws(EnvelopeError) -> Void
    ) throws(EnvelopeError) {
        try expect(0x5B)
        if take(0x5D) { return }
        while true {
            try body(&self)
            if take(0x2C) { continue }
            guard take(0x5D) else { throw error("expected ',' or ']'") }
            return
        }
    }

    /// A number that is whole and not negative.
    fileprivate mutating func wholeNumber(_ name: StaticString) throws(EnvelopeError) -> UInt64 {
        let first = peek()
        guard (0x30...0x39).contains(first) else { throw error("\(name) must be a whole number, not negative") }
        let start = at
        try number()
        var value: UInt64 = 0
        for index in start..<at {
            let digit = base[index] &- 0x30
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
            guard digit < 10, !overflow, !carry else { throw error("\(name) must be a whole number, not negative") }
            value = sum
        }
        return value
    }
}
