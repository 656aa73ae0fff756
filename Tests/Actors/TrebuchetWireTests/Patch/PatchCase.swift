import Testing
import TrebuchetWire

/// A patch, its document, and the expected result.
struct PatchCase: CustomTestStringConvertible {
    let what: String
    let document: String
    let patch: String
    let outcome: Result<String, JSONPatchError.Code>

    var testDescription: String { what }

    static func gives(_ what: String, _ document: String, _ patch: String, _ result: String) -> PatchCase {
        PatchCase(what: what, document: document, patch: patch, outcome: .success(result))
    }

    static func fails(
        _ what: String, _ document: String, _ patch: String, _ code: JSONPatchError.Code = .missingTarget
    ) -> PatchCase {
        PatchCase(what: what, document: document, patch: patch, outcome: .failure(code))
    }
}

extension JSONPatchError.Code: Error {}
