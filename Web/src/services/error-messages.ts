/** The server's messages for refused writes, by the case of `CollectionError`; the placeholders are members of the case. */
const sentences: Record<string, string> = {
    unknownCaller: "the server does not identify callers",
    invalidName: "a collection name must have 1 to 128 letters, digits, '-', '_' and '.'",
    invalidDocument: "the document cannot be stored: {_0}",
    notFound: "document '{id}' does not exist",
    alreadyExists: "document '{id}' already exists",
    forbidden: "the rules of the collection do not allow you to {_0} document '{id}'",
    conditionFailed: "the condition does not hold: document '{id}' is at revision {revision}",
    notAnArray: "field '{field}' of document '{id}' is not an array",
    notANumber: "field '{field}' of document '{id}' is not a number",
    numberOverflow: "the sum for field '{field}' of document '{id}' exceeds the range of numbers",
    linkTargetMissing: "link target '{id}' does not exist in collection '{collection}'; create it first",
    tooManyCommands: "the transaction has more than {limit} commands; split it",
    tooDeep: "values are nested deeper than {limit} arrays and objects",
    documentTooLarge: "document '{id}' has {bytes} bytes; at most {limit} are allowed",
    tooManyDocuments: "the collection has reached its limit of {limit} documents",
    collectionTooLarge: "the collection has reached its limit of {limit} bytes",
    shareUsedUp: "quota exceeded: at most {limit} {of} of the collection now ({setting}); delete some first",
    tooManyCollections: "the server has reached its limit of {limit} collections",
    outdated: "the write was not applied: newer writes of its client arrived before it",
    numberReused: "the write was not applied: its client already used its number for another write",
    refused: "the server does not accept writes: {_0}",
}

/**
 * Returns the reason why a write was refused, in the server's wording for queries. Returns the error itself if its case is unknown here.
 */
export function sentenceOf(error: Record<string, any>): string {
    const [name = "", members]: [string?, any?] = Object.entries(error)[0] ?? []
    if (!members || !Object.hasOwn(sentences, name)) return "refused: " + JSON.stringify(error)
    const isAbsent = name === "conditionFailed" && members.revision == null
    const text = isAbsent ? "the condition does not hold: document '{id}' does not exist" : sentences[name]!
    return text.replace(/\{(\w+)\}/g, (_, member) => members[member]) + (members.reason ? ": " + members.reason : "")
}
