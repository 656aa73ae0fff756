package import Bytes
package import TrebuchetWire

/// The JSON of outcomes in one pass.
extension MutationOutcome: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        var (number, revision, index): (Int?, Int?, Int?)
        var error: CollectionError?
        var shown: [String: Int]?
        try json.eachMember(depth: depth) { json, name in
            let value = try JSONValue(json: &json, depth: depth + 1)
            switch (name, value) {
            case (_, .null): break
            case ("number", .integer(let integer)): number = Int(integer)
            case ("revision", .integer(let integer)): revision = Int(integer)
            case ("index", .integer(let integer)): index = Int(integer)
            case ("error", _): error = try value.decode(CollectionError.self)
            case ("shown", _): shown = try value.decode([String: Int].self)
            case ("number", _), ("revision", _), ("index", _):
                throw ValueError("the member '\(name)' of an outcome must be an integer")
            default: break
            }
        }
        guard let number, let revision else {
            throw ValueError("an outcome requires the numbers number and revision")
        }
        self.init(number: number, revision: revision, error: error, index: index, shown: shown)
    }

    package func write(json: inout ByteBuffer) throws {
        json.append(#"{"number":"# as StaticString)
        json.append(decimal: Int64(number))
        json.append(#","revision":"# as StaticString)
        json.append(decimal: Int64(revision))
        if let error {
            json.append(#","error":"# as StaticString)
            try JSONValue(encoding: error).write(json: &json)
        }
        if let index {
            json.append(#","index":"# as StaticString)
            json.append(decimal: Int64(index))
        }
        if let shown {
            json.append(#","shown":{"# as StaticString)
            var isFirst = true
            for (query, revision) in shown {
                json.append((isFirst ? "\"" : ",\"") as StaticString)
                isFirst = false
                json.append(utf8: query)
                json.append("\":" as StaticString)
                json.append(decimal: Int64(revision))
            }
            json.append(UInt8(ascii: "}"))
        }
        json.append(UInt8(ascii: "}"))
    }
}

extension MutationOutcome: Codable {}
