internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire

/// Encodes spans as OTLP JSON: `ExportTraceServiceRequest`.
enum OTLPText {
    static func json(_ spans: [TraceSpan], service: String, instance: String?) -> [UInt8] {
        var buffer = ByteBuffer(capacity: 512 * spans.count + 256)
        buffer.append(#"{"resourceSpans":[{"resource":{"attributes":["# as StaticString)
        attribute("service.name", service, to: &buffer)
        if let instance {
            buffer.append(0x2C)
            attribute("service.instance.id", instance, to: &buffer)
        }
        buffer.append(#"]},"scopeSpans":[{"scope":{"name":"trebuchet"},"spans":["# as StaticString)
        for (index, span) in spans.enumerated() {
            if index > 0 { buffer.append(0x2C) }
            append(span, to: &buffer)
        }
        buffer.append("]}]}]}" as StaticString)
        return Array(buffer.bytes)
    }

    private static func append(_ span: TraceSpan, to buffer: inout ByteBuffer) {
        // OTLP JSON encodes 64-bit numbers as strings and IDs in hexadecimal.
        buffer.append(#"{"traceId":""# as StaticString)
        span.context.appendTraceID(to: &buffer)
        buffer.append(#"","spanId":""# as StaticString)
        TraceContext.append(span.context.span, to: &buffer)
        if let parent = span.parent {
            buffer.append(#"","parentSpanId":""# as StaticString)
            TraceContext.append(parent, to: &buffer)
        }
        buffer.append(#"","kind":"# as StaticString)
        buffer.append(number(span.kind))
        buffer.append(#","startTimeUnixNano":""# as StaticString)
        buffer.append(decimal: span.startTime)
        buffer.append(#"","endTimeUnixNano":""# as StaticString)
        buffer.append(decimal: span.startTime &+ span.time)
        buffer.append(#"","name":"# as StaticString)
        JSONString.append(span.name, to: &buffer)
        buffer.append(#","attributes":["# as StaticString)
        var isFirst = true
        span.eachAttribute { name, value in
            if !isFirst { buffer.append(0x2C) }
            isFirst = false
            attribute(name, value, to: &buffer)
        }
        if let error = span.error {
            if !isFirst { buffer.append(0x2C) }
            attribute("error.type", error, to: &buffer)
            buffer.append(#"],"status":{"code":2}}"# as StaticString)
        } else {
            buffer.append("]}" as StaticString)
        }
    }

    /// - Parameter name: an attribute name that needs no escapes.
    private static func attribute(_ name: StaticString, _ value: String, to buffer: inout ByteBuffer) {
        buffer.append(#"{"key":""# as StaticString)
        buffer.append(name)
        buffer.append(#"","value":{"stringValue":"# as StaticString)
        JSONString.append(value, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    /// Returns the span kind as an ASCII digit.
    private static func number(_ kind: TraceSpan.Kind) -> UInt8 {
        switch kind {
        case .internal: 0x31
        case .server: 0x32
        case .client: 0x33
        }
    }
}
