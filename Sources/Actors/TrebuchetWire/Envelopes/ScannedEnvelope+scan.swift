internal import Bytes

extension ScannedEnvelope {
    /// Scans a message and validates it completely; ranges refer to `message`.
    package mutating func scan(_ message: UnsafeRawBufferPointer) throws(EnvelopeError) {
        // Ranges have 32-bit offsets.
        guard message.count <= Int(Int32.max) else { throw EnvelopeError("the message is 2 GiB or more") }
        removeAll()
        if !scanKnown(message) { try scanAny(message) }
    }

    /// Scans any message, member by member.
    @inline(never)
    mutating func scanAny(_ message: UnsafeRawBufferPointer) throws(EnvelopeError) {
        removeAll()
        var cursor = JSONCursor(message)
        do throws(EnvelopeError) {
            try scanEnvelope(&cursor)
            try cursor.expectEnd()
            kind = try Self.kind(type, message)
            try check(message)
        } catch {
            // Only calls get an error response.
            let kind = type.isAbsent ? nil : try? Self.kind(type, message)
            let isKnown = (kind == .invocation || kind == .repeat) && Self.isIdentifier(callID, message)
            throw EnvelopeError(error.message, callID: isKnown ? string(callID, in: message) : nil)
        }
    }

    /// Scans the outer object.
    @inline(__always)
    private mutating func scanEnvelope(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        var hasPayload = false
        var seen = MemberSet()
        var isFirst = true
        try cursor.expect(0x7B)
        while let member = try cursor.member(&isFirst) {
            switch member {
            case .type:
                try seen.insert(member)
                type = try cursor.string()
            case .payload:
                try seen.insert(member)
                hasPayload = true
                try scanPayload(&cursor)
            default:
                _ = try cursor.value(depth: 1)
            }
        }
        guard !type.isAbsent else { throw EnvelopeError("the message has no 'type'") }
        guard hasPayload else { throw EnvelopeError("the message has no 'payload'") }
    }

    @inline(__always)
    private mutating func scanPayload(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        var seen = MemberSet()
        var isFirst = true
        try cursor.expect(0x7B)
        while let member = try cursor.member(&isFirst) {
            try seen.insert(member)
            switch member {
            case .callID: callID = try cursor.string()
            case .actorID: actorID = try Self.actorID(&cursor)
            case .targetIdentifier: targetIdentifier = try cursor.string()
            case .arguments: try Self.scanArray(&cursor, into: &arguments, "arguments")
            case .result: result = try cursor.value(depth: 2)
            case .streamID: streamID = try cursor.string()
            case .sequenceNumber: sequenceNumber = try cursor.wholeNumber("sequenceNumber")
            case .timestamp: timestamp = try cursor.string()
            case .data: data = try cursor.value(depth: 2)
            default: try scanRareMember(member, &cursor)
            }
        }
    }

    /// Scans rare members, outside the hot path.
    @inline(never)
    private mutating func scanRareMember(
        _ member: EnvelopeMember, _ cursor: inout JSONCursor
    ) throws(EnvelopeError) {
        // A null counts as an absent member.
        if cursor.peek() == 0x6E {
            _ = try cursor.value(depth: 2)
            return
        }
        switch member {
        case .genericSubstitutions:
            try Self.scanArray(&cursor, into: &genericSubstitutions, "generic substitutions")
            try Self.unquote(&genericSubstitutions, cursor)
        case .timeoutMilliseconds:
            timeoutMilliseconds = Int(clamping: try cursor.wholeNumber("timeoutMilliseconds"))
        case .protocolVersion: protocolVersion = Int(clamping: try cursor.wholeNumber("protocolVersion"))
        case .filter: filter = try cursor.value(depth: 2)
        case .streamFilter: streamFilter = try cursor.value(depth: 2)
        case .reason: reason = try cursor.string()
        case .epoch: epoch = try cursor.string()
        case .session: session = try cursor.string()
        // A value that is not a string is ignored; the call proceeds without a trace.
        case .traceparent where cursor.peek() == 0x22: traceparent = try cursor.string()
        case .metadata: metadata = try MetadataFields.scan(&cursor)
        case .limits: limits = try cursor.value(depth: 2)
        case .client: client = try cursor.string()
        case .lastSequence: lastSequence = try cursor.wholeNumber("lastSequence")
        case .base: base = try cursor.wholeNumber("base")
        case .patch: patch = try cursor.value(depth: 2)
        case .error: try scanError(&cursor)
        case .code: code = try cursor.string()
        case .message, .errorMessage:
            hasError = true
            errorMessage = try cursor.string()
        case .reconnectAfterMilliseconds:
            reconnectAfterMilliseconds = Int(clamping: try cursor.wholeNumber("reconnectAfterMilliseconds"))
        case .retryAfterMilliseconds:
            retryAfterMilliseconds = Int(clamping: try cursor.wholeNumber("retryAfterMilliseconds"))
        default: _ = try cursor.value(depth: 2)
        }
    }

    /// Scans an actor name, or the object `{"id":…,"host":…,"port":…}` of older clients.
    @inline(__always)
    private static func actorID(_ cursor: inout JSONCursor) throws(EnvelopeError) -> ByteRange {
        guard cursor.peek() == 0x7B else { return try cursor.string() }
        return try actorIDObject(&cursor)
    }

    private static func actorIDObject(_ cursor: inout JSONCursor) throws(EnvelopeError) -> ByteRange {
        var id = ByteRange.absent
        var seen = MemberSet()
        var isFirst = true
        try cursor.expect(0x7B)
        while let member = try cursor.member(&isFirst) {
            try seen.insert(member)
            if member == .id { id = try cursor.string() } else { _ = try cursor.value(depth: 3) }
        }
        guard !id.isAbsent else { throw EnvelopeError("actorID has no 'id'") }
        return id
    }

    @inline(__always)
    private static func scanArray(
        _ cursor: inout JSONCursor, into ranges: inout [ByteRange], _ what: StaticString
    ) throws(EnvelopeError) {
        guard cursor.consume(0x5B) else {
            // Like any optional member, it may be null.
            guard cursor.peek() == 0x6E else { throw cursor.error("expected an array of \(what)") }
            _ = try cursor.value(depth: 2)
            return
        }
        if cursor.consume(0x5D) { return }
        while true {
            guard ranges.count < maximumArguments else { throw EnvelopeError("more than \(maximumArguments) \(what)") }
            ranges.append(try cursor.value(depth: 3))
            if cursor.consume(0x2C) { continue }
            guard cursor.consume(0x5D) else { throw cursor.error("expected ',' or ']'") }
            return
        }
    }

    /// Converts ranges of whole values to ranges of the strings that they must be.
    private static func unquote(_ ranges: inout [ByteRange], _ cursor: JSONCursor) throws(EnvelopeError) {
        for index in ranges.indices {
            var inner = cursor
            inner.at = Int(ranges[index].offset)
            ranges[index] = try inner.string()
        }
    }

    private mutating func scanError(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        hasError = true
        var seen = MemberSet()
        var isFirst = true
        try cursor.expect(0x7B)
        while let member = try cursor.member(&isFirst) {
            try seen.insert(member)
            switch member {
            case .code: errorCode = try cursor.string()
            case .message: errorMessage = try cursor.string()
            case .type: errorType = try cursor.string()
            case .data: errorData = try cursor.value(depth: 3)
            case .retryAfterMilliseconds where cursor.peek() != 0x6E:
                retryAfterMilliseconds = Int(clamping: try cursor.wholeNumber("retryAfterMilliseconds"))
            default: _ = try cursor.value(depth: 3)
            }
        }
    }

    // MARK: Required members of each kind

    @inline(__always)
    private static func kind(
        _ name: ByteRange, _ message: UnsafeRawBufferPointer
    ) throws(EnvelopeError) -> EnvelopeKind {
        if !name.isEscaped, let kind = EnvelopeKind(name.bytes(in: message)) { return kind }
        let text = JSONString.text(name.bytes(in: message), isEscaped: name.isEscaped)
        guard let kind = EnvelopeKind(rawValue: text) else {
            throw EnvelopeError("unknown type '\(text.prefix(bytes: 64))'")
        }
        return kind
    }

    @inline(__always)
    private func check(_ message: UnsafeRawBufferPointer) throws(EnvelopeError) {
        switch kind {
        case .invocation, .repeat:
            try requireIdentifier(callID, "callID", message)
            try requireName(actorID, "actorID")
            try requireName(targetIdentifier, "targetIdentifier")
        case .cancel, .response:
            try requireIdentifier(callID, "callID", message)
        case .streamStart:
            try requireIdentifier(streamID, "streamID", message)
            try requireIdentifier(callID, "callID", message)
        case .streamData:
            try requireIdentifier(streamID, "streamID", message)
            guard sequenceNumber != nil else { throw EnvelopeError("streamData: missing sequenceNumber") }
            guard data.isAbsent != patch.isAbsent else {
                throw EnvelopeError("streamData: exactly one of data and patch")
            }
        case .streamEnd, .streamError:
            try requireIdentifier(streamID, "streamID", message)
        case .streamResume:
            try requireIdentifier(streamID, "streamID", message)
            if !callID.isAbsent { try requireIdentifier(callID, "callID", message) }
            try requireName(actorID, "actorID")
            try requireName(targetIdentifier, "targetIdentifier")
        case .error, .goAway, .hello: break
        }
    }

    @inline(__always)
    private func requireIdentifier(
        _ identifier: ByteRange, _ name: StaticString, _ message: UnsafeRawBufferPointer
    ) throws(EnvelopeError) {
        if Self.isIdentifier(identifier, message) { return }
        if identifier.isAbsent { throw EnvelopeError("\(kind): missing \(name)") }
        throw EnvelopeError("\(kind): \(name) must be 1 to \(Self.maximumIdentifierLength) printable ASCII characters")
    }

    @inline(__always)
    private func requireName(_ range: ByteRange, _ name: StaticString) throws(EnvelopeError) {
        guard !range.isAbsent, range.count > 0 else { throw EnvelopeError("\(kind): missing \(name)") }
    }

    @inline(__always)
    private static func isIdentifier(_ range: ByteRange, _ message: UnsafeRawBufferPointer) -> Bool {
        guard !range.isAbsent, range.count > 0, range.count <= maximumIdentifierLength, !range.isEscaped else {
            return false
        }
        for byte in range.bytes(in: message) where byte < 0x20 || byte > 0x7E { return false }
        return true
    }
}

extension JSONCursor {
    /// Reads the next member of an object after its opening brace; nil at the end.
    @inline(__always)
    fileprivate mutating func member(_ isFirst: inout Bool) throws(EnvelopeError) -> EnvelopeMember? {
        guard let name = try name(&isFirst) else { return nil }
        if name.isEscaped { return escapedMember(name) }
        return EnvelopeMember(base + Int(name.offset), Int(name.count))
    }

    @inline(never)
    private func escapedMember(_ name: ByteRange) -> EnvelopeMember {
        var text = JSONString.text(bytes(name), isEscaped: true)
        return text.withUTF8 { $0.isEmpty ? .unknown : EnvelopeMember($0.baseAddress!, $0.count) }
    }

    /// Reads a non-negative integer.
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
