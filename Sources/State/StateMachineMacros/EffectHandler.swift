import SwiftDiagnostics
import SwiftSyntax

/// The method that runs one case of `IOEffect`.
struct EffectHandler {
    let element: EnumCase
    /// The name of the method, such as `runFetch`.
    let name: String
    /// The types of the payload, qualified for use outside `IOEffect`.
    let types: [String]

    static func handlers(for cases: [EnumCase], nested: Set<String>) -> [EffectHandler] {
        cases.map { element in
            EffectHandler(
                element: element, name: "run" + capitalized(element.name.plainText),
                types: element.payload.map { TypeQualifier.qualify($0.type, owner: "IOEffect", nested: nested) })
        }
    }

    /// The declaration without the result, such as `func runPair(_ id: Int, _ name: String)`.
    var signature: String {
        // The existing names, which generated names must not repeat.
        var taken = Set(element.payload.compactMap(\.name))
        let parameters = zip(element.payload.indices, zip(element.payload, types)).map { index, part in
            let (payload, type) = part
            let escaping = payload.isClosure ? "@escaping " : ""
            if let name = payload.name { return "_ \(name.asIdentifier): \(escaping)\(type)" }
            var local = element.payload.count == 1 ? "value" : "value\(index)"
            while !taken.insert(local).inserted { local += "_" }
            return "_ \(local): \(escaping)\(type)"
        }
        return "func \(name)(\(parameters.joined(separator: ", ")))"
    }

    /// The call of the method, such as `runPair(value0, value1)`.
    var call: String {
        let arguments = element.payload.indices.map { "value\($0)" }
        return "\(name)(\(arguments.joined(separator: ", ")))"
    }

    /// Returns errors for cases whose methods would be the same.
    static func collisions(_ handlers: [EffectHandler]) -> [Diagnostic] {
        handlers.enumerated().compactMap { index, handler in
            let other = handlers[..<index].first {
                $0.name == handler.name && $0.types == handler.types && $0.element.canCoexist(with: handler.element)
            }
            guard let other else { return nil }
            return MacroDiagnostic.error(
                "handler", at: handler.element.name,
                "the cases '\(other.element.name.plainText)' and '\(handler.element.name.plainText)' are both "
                    + "run by '\(handler.name)': rename one of them",
                notes: [
                    Note("handler.note", at: other.element.name, "'\(other.element.name.plainText)' is here")
                ])
        }
    }

    /// Returns the capitalized name without characters that are invalid in an identifier: `LoadAll` for `loadAll`.
    private static func capitalized(_ name: String) -> String {
        name.split { !($0.isLetter || $0.isNumber || $0 == "_") }
            .map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
}
