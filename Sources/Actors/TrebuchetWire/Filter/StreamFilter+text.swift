package import Bytes

/// The text of a filter in an invocation: an object with `path`, `distinct`, `minIntervalMilliseconds` and `where`.
extension StreamFilter {
    /// The maximum size in bytes of a path or of the value of a condition.
    package static let maximumTextLength = 1_024
    /// The maximum interval in milliseconds, one hour.
    package static let maximumInterval = 3_600_000

    package func append(to buffer: inout ByteBuffer) {
        var isFirst = true
        func member(_ name: StaticString) {
            buffer.append(isFirst ? 0x7B : 0x2C)
            buffer.append(name)
            isFirst = false
        }
        if let path {
            member(#""path":"#)
            JSONString.append(path, to: &buffer)
        }
        if isDistinct { member(#""distinct":true"#) }
        if let minimumIntervalMilliseconds {
            member(#""minIntervalMilliseconds":"#)
            buffer.append(decimal: Int64(minimumIntervalMilliseconds))
        }
        if let condition {
            member(#""where":{"path":"#)
            JSONString.append(condition.path, to: &buffer)
            buffer.append(#","op":"# as StaticString)
            JSONString.append(condition.test.comparison.rawValue, to: &buffer)
            if let value = condition.test.value {
                buffer.append(#","value":"# as StaticString)
                buffer.append(value)
            }
            if condition.test.comparesNumbersAlone { buffer.append(#","numbersAlone":true"# as StaticString) }
            buffer.append(0x7D)
        }
        if isFirst { buffer.append(0x7B) }
        buffer.append(0x7D)
    }

    /// Parses a filter. Unknown members are rejected, because ignoring one would deliver unrequested values.
    package init(_ text: UnsafeRawBufferPointer) throws(EnvelopeError) {
        self.init()
        var cursor = JSONCursor(text)
        var isFirst = true
        try cursor.expect(0x7B)
        while let range = try cursor.name(&isFirst) {
            let name = JSONName(range, in: cursor)
            if name.isEqual("path") {
                path = try Self.pointer(&cursor)
            } else if name.isEqual("distinct") {
                isDistinct = try Self.flag("distinct", &cursor)
            } else if name.isEqual("minIntervalMilliseconds") {
                minimumIntervalMilliseconds = try Self.interval(&cursor)
            } else if name.isEqual("where") {
                condition = try Condition(&cursor)
            } else {
                throw EnvelopeError("unknown member '\(name.text)' of a filter")
            }
        }
        try cursor.expectEnd()
    }

    fileprivate static func flag(
        _ name: StaticString, _ cursor: inout JSONCursor
    ) throws(EnvelopeError) -> Bool {
        let value = cursor.bytes(try cursor.value())
        guard value.equals("true") || value.equals("false") else {
            throw EnvelopeError("'\(name)' of a filter must be true or false")
        }
        return value.equals("true")
    }

    private static func interval(_ cursor: inout JSONCursor) throws(EnvelopeError) -> Int {
        guard let value = JSONNumber.int(cursor.bytes(try cursor.value())), (1...maximumInterval).contains(value) else {
            throw EnvelopeError("'minIntervalMilliseconds' of a filter must be from 1 to \(maximumInterval)")
        }
        return value
    }

    fileprivate static func pointer(_ cursor: inout JSONCursor) throws(EnvelopeError) -> String {
        guard cursor.peek() == 0x22 else { throw EnvelopeError("'path' of a filter must be a string") }
        let text = JSONName(try cursor.string(), in: cursor).text
        guard text.utf8.count <= maximumTextLength else {
            throw EnvelopeError("'path' of a filter is longer than \(maximumTextLength) bytes")
        }
        guard JSONPointer(text) != nil else {
            throw EnvelopeError(
                "'\(text)' is not a JSON Pointer: it must begin with '/', and '~' must be followed by 0 or 1")
        }
        return text
    }
}

extension StreamFilter.Condition {
    fileprivate init(_ cursor: inout JSONCursor) throws(EnvelopeError) {
        var path: String?
        var comparison: StreamCondition.Comparison?
        var value: [UInt8]?
        var isOfNumbersAlone = false
        var isFirst = true
        try cursor.expect(0x7B)
        while let range = try cursor.name(&isFirst) {
            let name = JSONName(range, in: cursor)
            if name.isEqual("path") {
                path = try StreamFilter.pointer(&cursor)
            } else if name.isEqual("op") {
                guard cursor.peek() == 0x22 else { throw EnvelopeError("'op' of a filter must be a string") }
                let text = JSONName(try cursor.string(), in: cursor).text
                comparison = StreamCondition.Comparison(rawValue: text)
                guard comparison != nil else { throw EnvelopeError("unknown 'op' '\(text)' of a filter") }
            } else if name.isEqual("value") {
                value = Array(cursor.bytes(try cursor.value(depth: 2)))
            } else if name.isEqual("numbersAlone") {
                isOfNumbersAlone = try StreamFilter.flag("numbersAlone", &cursor)
            } else {
                throw EnvelopeError("unknown member '\(name.text)' of 'where' of a filter")
            }
        }
        guard let path, let comparison else { throw EnvelopeError("'where' of a filter requires 'path' and 'op'") }
        if comparison.needsValue {
            guard let value else { throw EnvelopeError("'\(comparison.rawValue)' of a filter requires a 'value'") }
            guard value.count <= StreamFilter.maximumTextLength else {
                throw EnvelopeError("'value' of a filter is longer than \(StreamFilter.maximumTextLength) bytes")
            }
        } else {
            value = nil
            isOfNumbersAlone = false
        }
        self.init(
            path: path,
            test: StreamCondition(comparison: comparison, value: value, comparesNumbersAlone: isOfNumbersAlone))
    }
}

extension JSONName {
    /// The text of the string.
    fileprivate var text: String { String(decoding: content, as: UTF8.self) }
}
