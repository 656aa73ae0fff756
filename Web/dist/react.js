/* react.js of Trebuchet, MIT License */
import{useMemo as t,useSyncExternalStore as e}from"react";function r(e,r,o){return t(()=>e.actor(r,o),[e,r,o])}function o(r,o){let s=t(()=>o?r.at(o):r,[r,o]);return e(s.subscribe,s.getSnapshot,s.getSnapshot)}export{r as useActor,o as useActorState};
