package import Bytes
package import TrebuchetWire

/// The JSON of queries:
///
///     {"conditions":[{"field":"done","comparison":"equal","value":false}],
///      "order":[{"field":"priority","isDescending":true}],"limit":20,"after":null,"counts":false}
///
/// All members are optional, and unknown members are an error. A condition with groups is `{"any":[[…],[…]]}`.
extension CollectionQuery: Codable {
    public init(from decoder: any Decoder) throws { try self.init(JSONValue(from: decoder)) }
    public func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

extension CollectionQuery: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws { try self.init(JSONValue(json: &json, depth: depth)) }
    package func write(json: inout ByteBuffer) { value.write(json: &json) }

    init(_ value: JSONValue) throws {
        let members = try value.members("a query", ["conditions", "order", "limit", "after", "counts"])
        let order = try members.list("order").map { value in
            let members = try value.members("an order", ["field", "isDescending"])
            return QueryOrder(try members.text("field"), isDescending: try members.flag("isDescending"))
        }
        self.init(
            where: try members.list("conditions").map { try QueryCondition($0) }, order: order,
            limit: try members.integer("limit"), after: try members["after"]?.textOrNull,
            includesCount: try members.flag("counts"))
    }

    package var value: JSONValue {
        var members: JSONObject = [
            "conditions": .array(conditions.map(\.value)),
            "order": .array(
                order.map { .object(["field": .string($0.field), "isDescending": .bool($0.isDescending)]) }),
        ]
        // Members that older servers do not know are written only when they are used.
        members["limit"] = limit.map { .integer(Int64($0)) }
        members["after"] = after.map { .string($0) }
        members["counts"] = includesCount ? .bool(true) : nil
        return .object(members)
    }
}

extension QueryCondition: Codable {
    public init(from decoder: any Decoder) throws { try self.init(JSONValue(from: decoder)) }
    public func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }

    init(_ value: JSONValue) throws {
        let members = try value.members("a condition", ["field", "comparison", "value", "any"])
        if members["any"] != nil {
            guard members.count == 1 else { throw ValueError("a condition with 'any' must not have other members") }
            let groups = try members.list("any").map { group in
                guard case .array(let conditions) = group else {
                    throw ValueError("'any' must have arrays of conditions")
                }
                return try conditions.map { try QueryCondition($0) }
            }
            self.init(.any(groups))
            return
        }
        let name = try members.text("comparison")
        guard let comparison = Comparison(rawValue: name) else {
            throw ValueError("unknown comparison '\(name.prefix(bytes: 32))'")
        }
        self.init(.field(FieldPath(try members.text("field")), comparison, members["value"] ?? .null))
    }

    /// The JSON of the condition.
    var value: JSONValue {
        switch kind {
        case .field(let field, let comparison, let value):
            .object([
                "field": .string(field.text), "comparison": .string(comparison.rawValue), "value": value,
            ])
        case .any(let groups): .object(["any": .array(groups.map { .array($0.map(\.value)) })])
        }
    }
}

extension JSONValue {
    /// Returns the members of an object; throws for unknown ones.
    fileprivate func members(_ what: String, _ names: Set<String>) throws -> JSONObject {
        guard case .object(let members) = self else { throw ValueError("\(what) must be an object") }
        for name in members.names where !names.contains(name) {
            throw ValueError("unknown member '\(name.prefix(bytes: 32))' of \(what)")
        }
        return members
    }
}

extension JSONObject {
    fileprivate func list(_ name: String) throws -> [JSONValue] {
        switch self[name] ?? .null {
        case .null: return []
        case .array(let elements): return elements
        default: throw ValueError("'\(name)' must be an array")
        }
    }

    fileprivate func text(_ name: String) throws -> String {
        guard case .string(let text)? = self[name] else { throw ValueError("'\(name)' must be a string") }
        return text
    }

    fileprivate func flag(_ name: String) throws -> Bool {
        switch self[name] ?? .null {
        case .null: return false
        case .bool(let flag): return flag
        default: throw ValueError("'\(name)' must be true or false")
        }
    }

    fileprivate func integer(_ name: String) throws -> Int? {
        switch self[name] ?? .null {
        case .null: return nil
        case .integer(let integer): return Int(integer)
        default: throw ValueError("'\(name)' must be an integer")
        }
    }
}

extension CollectionQuery {
    /// Decodes a query of a client. Its size is checked before anything is decoded.
    package init(sent query: EncodedJSON) throws(CollectionError) {
        guard query.byteCount <= Self.maximumBytes else {
            throw .invalidQuery("\(query.byteCount) bytes; at most \(Self.maximumBytes) are allowed")
        }
        do {
            try self.init(try query.value())
        } catch {
            throw .invalidQuery("\(error)")
        }
        try check()
    }
}
