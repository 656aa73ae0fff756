/* svelte.js of Trebuchet, MIT License */
function e(e){return{subscribe(r){let t=()=>r(e.getSnapshot()),s=e.subscribe(t);return t(),s}}}export{e as readable};
