internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire

/// Spans as OTLP has them in JSON: `ExportTraceServiceRequest`.
enum OTLPText {
    static func json(_ spans: [TraceSpan], service: String) -> [UInt8] {
        var buffer = ByteBuffer(capacity: 512 * spans.count + 256)
        buffer.append(#"{"resourceSpans":[{"resource":{"attributes":["# as StaticString)
        attribute("service.name", service, to: &buffer)
        buffer.append(#"]},"scopeSpans":[{"scope":{"name":"trebuchet"},"spans":["# as StaticString)
        for (index, span) in spans.enumerated() {
            if index > 0 { buffer.append(0x2C) }
            append(span, to: &buffer)
        }
        buffer.append("]}]}]}" as StaticString)
        return Array(buffer.bytes)
    }

    private static func append(_ span: TraceSpan, to buffer: inout ByteBuffer) {
        // Numbers of 64 bits are texts there, and IDs are in hexadecimal digits.
        var head = #"{"traceId":"\#(span.context.traceID)","spanId":"\#(span.context.spanID)","#
        if let parent = span.parentID { head += #""parentSpanId":"\#(parent)","# }
        let took = span.took.components
        let end = span.began &+ UInt64(took.seconds) &* 1_000_000_000 &+ UInt64(took.attoseconds / 1_000_000_000)
        head +=
            #""kind":\#(number(span.kind)),"startTimeUnixNano":"\#(span.began)","endTimeUnixNano":"\#(end)","name":"#
        buffer.append(utf8: head)
        JSONString.append(span.name, to: &buffer)
        buffer.append(#","attributes":["# as StaticString)
        var isFirst = true
        for (name, value) in span.attributes {
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

    private static func attribute(_ name: String, _ value: String, to buffer: inout ByteBuffer) {
        buffer.append(#"{"key":"# as StaticString)
        JSONString.append(name, to: &buffer)
        buffer.append(#","value":{"stringValue":"# as StaticString)
        JSONString.append(value, to: &buffer)
        buffer.append("}}" as StaticString)
    }

    private static func number(_ kind: TraceSpan.Kind) -> Int {
        switch kind {
        case .internal: 1
        case .server: 2
        case .client: 3
        }
    }
}
